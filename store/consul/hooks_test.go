//go:build linux

package consul_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store/consul"
)

// hooked calls a function before a request is sent and after it was answered.
type hooked struct {
	before, after func(*http.Request)
}

func (h hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.before != nil {
		h.before(r)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if h.after != nil {
		h.after(r)
	}
	return response, err
}

func openHooked(t testing.TB, address string, h hooked) *consul.Store {
	t.Helper()
	client, err := api.NewClient(&api.Config{Address: address, HttpClient: &http.Client{Transport: h}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := consul.Open(t.Context(), consul.Config{Client: client, MinTTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
