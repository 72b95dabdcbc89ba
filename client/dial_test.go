package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A program that says nothing gets what the environment says, over a real network and on
// the machine's own clock.
func TestDialByTheEnvironment(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	server := httptest.NewServer(door.MustHost(e, door.HostConfig{}, native.Kind))
	defer server.Close()
	t.Setenv("LEASEHOLD_SERVER", "http://127.0.0.1:1, "+server.URL)
	t.Setenv("LEASEHOLD_NAMESPACE", "elsewhere")
	t.Setenv("LEASEHOLD_HOLDER", "ann")
	t.Setenv("LEASEHOLD_WIRE", "") // httptest speaks HTTP alone, which the client finds out
	c, err := client.Dial(t.Context(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Acquire(t.Context(), "r", client.TTL(300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.TryAcquire(t.Context(), "r", client.TTL(300*time.Millisecond))
	var held *leasehold.Error
	if !errors.As(err, &held) || held.Lease.Holder != "ann" || held.Lease.Namespace != "elsewhere" {
		t.Errorf("held by %v", err)
	}
	// The server goes away for good: the hold ends by the clock, in its TTL.
	began := time.Now()
	server.CloseClientConnections()
	server.Close()
	<-h.Lost()
	if took := time.Since(began); took > 300*time.Millisecond+5*time.Second {
		t.Errorf("it was lost after %v", took)
	}
	if err := h.Release(t.Context()); !errors.Is(err, client.ErrExpired) {
		t.Errorf("the release says %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("closed: %v", err)
	}
}

func TestDialSaysWhatIsWrong(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:1": "cannot reach the server",
		"ftp://127.0.0.1":    "is not an address",
		"127.0.0.1:1":        "cannot reach the server at http://127.0.0.1:1",
	} {
		_, err := client.Dial(t.Context(), client.Config{Servers: []string{address}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, wire := range []v1.Wire{v1.WireHTTP, v1.WireAuto} {
		_, err := client.Dial(t.Context(), client.Config{Servers: []string{other.URL}, Wire: wire})
		if err == nil || !strings.Contains(err.Error(), "is not a Leasehold server") {
			t.Errorf("another server, %s: %v", wire, err)
		}
	}
}

// Without anything the holder is the process, as people can find it.
func TestTheHolderIsTheProcess(t *testing.T) {
	e := memory.Start(engine.NewGoClock())
	defer e.Close()
	server := httptest.NewServer(door.MustHost(e, door.HostConfig{}, native.Kind))
	defer server.Close()
	t.Setenv("LEASEHOLD_HOLDER", "")
	t.Setenv("LEASEHOLD_WIRE", "")
	c, err := client.Dial(t.Context(), client.Config{Servers: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Acquire(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	_, err = c.TryAcquire(t.Context(), "r")
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	var held *leasehold.Error
	if !errors.As(err, &held) || !strings.Contains(held.Lease.Holder, "@"+host+":") {
		t.Errorf("held by %v", err)
	}
}
