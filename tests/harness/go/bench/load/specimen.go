package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
)

// What every specimen has where a real review has its own uid; as long as one.
const placeholder = "00000000-0000-4000-8000-000000000000"

// One answer in so many is read as JSON; the others are searched for what matters, because
// reading all of them would take the processor from the server that is measured.
const readOneIn = 64

// A specimen is a review to send again and again, each time with a uid of its own.
type specimen struct {
	body    []byte
	uidAt   int
	allowed bool
	patched bool
	length  atomic.Int64 // of the answer; the same each time, whatever the order of a patch
}

func readSpecimens(path string) ([]*specimen, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []*specimen
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			break
		}
		one, wrong := readSpecimen(line)
		if wrong != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(found)+1, wrong)
		}
		found = append(found, one)
		if err != nil {
			break
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no review", path)
	}
	return found, nil
}

func readSpecimen(line []byte) (*specimen, error) {
	var stated struct {
		Review  json.RawMessage
		Allowed bool
		Patched bool
	}
	if err := json.Unmarshal(line, &stated); err != nil {
		return nil, err
	}
	at := bytes.Index(stated.Review, []byte(placeholder))
	if at < 0 {
		return nil, fmt.Errorf("the review has no uid %s", placeholder)
	}
	return &specimen{body: stated.Review, uidAt: at, allowed: stated.Allowed, patched: stated.Patched}, nil
}

// Check says what is wrong with an answer, or nothing.
func (s *specimen) check(answer []byte, uid string, number int) string {
	if number%readOneIn == 0 {
		if wrong := s.read(answer, uid); wrong != "" {
			return wrong
		}
	}
	if !bytes.Contains(answer, []byte(uid)) {
		return "the uid is not echoed"
	}
	if bytes.Contains(answer, []byte(`"allowed":true`)) != s.allowed {
		return "allowed is wrong"
	}
	if bytes.Contains(answer, []byte(`"patch":"`)) != s.patched {
		return "patch is missing, or there is one"
	}
	length := int64(len(answer))
	if !s.length.CompareAndSwap(0, length) && s.length.Load() != length {
		return "the answer differs from the first one"
	}
	return ""
}

func (s *specimen) read(answer []byte, uid string) string {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Response   struct {
			UID     string `json:"uid"`
			Allowed bool   `json:"allowed"`
			Patch   []byte `json:"patch"`
		} `json:"response"`
	}
	if err := json.Unmarshal(answer, &review); err != nil {
		return "the answer is not JSON"
	}
	var operations []struct{ Op, Path string }
	if len(review.Response.Patch) > 0 {
		if err := json.Unmarshal(review.Response.Patch, &operations); err != nil {
			return "the patch is not JSON"
		}
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Response.UID != uid ||
		review.Response.Allowed != s.allowed || (len(operations) > 0) != s.patched {
		return "the answer is not the one expected"
	}
	return ""
}
