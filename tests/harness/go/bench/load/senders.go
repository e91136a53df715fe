package main

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
)

// Longer than any answer takes; the API server gives up after 10 s too.
const patience = 10 * time.Second

// Fast costs little of the processor that it shares with the server.
type fast struct {
	client  *fasthttp.HostClient
	request *fasthttp.Request
	answer  *fasthttp.Response
}

func newFast(order plan, dial *tls.Config) *fast {
	request := fasthttp.AcquireRequest()
	request.SetRequestURI("https://" + order.Address + order.Path)
	request.Header.SetMethod("POST")
	request.Header.SetContentType("application/json")
	if order.Client == "fresh" {
		request.Header.SetConnectionClose()
	}
	return &fast{
		client: &fasthttp.HostClient{
			Addr: order.Address, IsTLS: true, TLSConfig: dial, MaxConns: 1,
			MaxIdemponentCallAttempts: 1, ReadTimeout: patience, WriteTimeout: patience,
			ReadBufferSize: 16 << 10,
			// A failure is counted, never tried again.
			RetryIfErr: func(*fasthttp.Request, int, error) (bool, bool) { return false, false },
		},
		request: request,
		answer:  fasthttp.AcquireResponse(),
	}
}

func (f *fast) send(body []byte) (int, []byte, error) {
	f.request.SetBodyRaw(body)
	err := f.client.Do(f.request, f.answer)
	return f.answer.StatusCode(), f.answer.Body(), err
}

// Standard is Go's own client, as API servers use it: it tries again where they would.
type standard struct {
	client *http.Client
	url    string
}

func newStandard(order plan, dial *tls.Config) *standard {
	transport := &http.Transport{TLSClientConfig: dial, MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1}
	return &standard{
		client: &http.Client{Transport: transport, Timeout: patience},
		url:    "https://" + order.Address + order.Path,
	}
}

func (s *standard) send(body []byte) (int, []byte, error) {
	response, err := s.client.Post(s.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
