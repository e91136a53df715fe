package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A sender sends one body on its one connection, which it opens when there is none.
type sender interface {
	send(body []byte) (status int, answer []byte, err error)
}

type worker struct {
	number  int
	via     sender
	latency *hdrhistogram.Histogram
	failed  map[string]int
	scratch []byte
}

func newWorker(order plan, dial *tls.Config, number int) *worker {
	var via sender = newFast(order, dial)
	if order.Client == "apiserver" {
		via = newStandard(order, dial)
	}
	return &worker{number: number, via: via, latency: newHistogram(), failed: map[string]int{}}
}

// Work sends until the time is over, or until nobody listens any more.
func (w *worker) work(ctx context.Context, specimens []*specimen) {
	for count := 0; ctx.Err() == nil; count++ {
		one := specimens[(w.number+count)%len(specimens)]
		uid := fmt.Sprintf("%08x-0000-4000-8000-%012x", w.number+1, count+1)
		w.scratch = append(w.scratch[:0], one.body...)
		copy(w.scratch[one.uidAt:], uid)
		started := time.Now()
		status, answer, err := w.via.send(w.scratch)
		took := time.Since(started)
		if errors.Is(err, syscall.ECONNREFUSED) {
			w.failed["refused"]++ // no review was lost: another replica would be asked
			return
		}
		if why := judge(one, status, answer, err, uid, count); why != "" {
			w.failed[why]++
			continue
		}
		_ = w.latency.RecordValue(max(1, took.Microseconds()))
	}
}

func judge(one *specimen, status int, answer []byte, err error, uid string, count int) string {
	if err != nil {
		return "broken: " + err.Error()
	}
	if status != 200 {
		return fmt.Sprintf("status %d", status)
	}
	return one.check(answer, uid, count)
}
