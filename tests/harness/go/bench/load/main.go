// Load sends admission reviews to one webhook over TLS and HTTP/1.1 and checks every answer.
//
// A plan comes on standard input as JSON, the result goes to standard output as JSON. Each
// connection is a closed loop: the next review is sent when the last one has been answered.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A plan says what is sent where, and for how long.
type plan struct {
	Address string
	CA      string
	Path    string
	// "fast"; "fresh", with a connection for each review; or "apiserver", the HTTP client that API
	// servers have.
	Client      string
	Connections int
	Seconds     float64
	Reviews     string // a file with one specimen per line
}

type result struct {
	Requests int64          `json:"requests"`
	Failed   map[string]int `json:"failed"`
	Seconds  float64        `json:"seconds"`
	P50      float64        `json:"p50_ms"`
	P99      float64        `json:"p99_ms"`
	P999     float64        `json:"p999_ms"`
	Max      float64        `json:"max_ms"`
}

func main() {
	log.SetFlags(0)
	var order plan
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		log.Fatalf("the plan on standard input: %v", err)
	}
	specimens, err := readSpecimens(order.Reviews)
	if err != nil {
		log.Fatal(err)
	}
	dial, err := trust(order.CA)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(run(order, dial, specimens)); err != nil {
		log.Fatal(err)
	}
}

func trust(path string) (*tls.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{"http/1.1"}}, nil
}

func run(order plan, dial *tls.Config, specimens []*specimen) result {
	started := time.Now()
	end := started.Add(time.Duration(order.Seconds * float64(time.Second)))
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	workers := make([]*worker, order.Connections)
	var group sync.WaitGroup
	for number := range workers {
		one := newWorker(order, dial, number)
		workers[number] = one
		group.Go(func() { one.work(ctx, specimens) })
	}
	group.Wait()
	return sum(workers, time.Since(started))
}

func sum(workers []*worker, took time.Duration) result {
	all := newHistogram()
	failed := map[string]int{}
	for _, one := range workers {
		all.Merge(one.latency)
		for why, count := range one.failed {
			failed[why] += count
		}
	}
	at := func(percent float64) float64 { return float64(all.ValueAtQuantile(percent)) / 1000 }
	return result{
		Requests: all.TotalCount(), Failed: failed, Seconds: took.Seconds(),
		P50: at(50), P99: at(99), P999: at(99.9), Max: float64(all.Max()) / 1000,
	}
}

// Microseconds up to two minutes, three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, 120_000_000, 3)
}
