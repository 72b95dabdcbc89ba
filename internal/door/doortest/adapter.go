package doortest

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// An Adapter is what the contract has to know of a door.
type Adapter struct {
	Name     string // of the door, in metrics and in the journal
	Resource string // that clients acquire, as the core names it, in the default namespace
	Waits    bool   // clients can wait for a lease

	// Undecided is how the door says that nobody can tell whether something happened: some
	// protocols have one answer for that and for Unavailable.
	Undecided leasehold.Code

	// Open opens the door, with what it needs beside the backend.
	Open func(testing.TB, *door.Backend) door.Door

	// Prepare puts in the engine what clients expect to be there. Nil: nothing.
	Prepare func(testing.TB, engine.Engine)

	// Dial returns a client of the protocol. All its connections are made by dial.
	Dial func(t testing.TB, dial Dialer) Client

	// Bad are bytes that no client sends, beside those that the contract tries on every door.
	Bad []string
}

// A Dialer connects to a port.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// A Client speaks a door's protocol. Its methods return the error of a call that got no answer;
// what the door answered is in the Answer.
type Client interface {
	// Acquire asks for a lease without end, in a holder's name. Asked again, it is the same
	// request: it has the same id. With a wait it stays until there is an answer.
	Acquire(ctx context.Context, holder string, wait time.Duration) (Answer, error)

	// Release gives back the lease of a holder.
	Release(ctx context.Context, holder string) (Answer, error)

	// Intrude asks for something that the caller has no right to.
	Intrude(ctx context.Context) (Answer, error)

	// Close closes all connections.
	Close()
}

// An Answer is what a door answered, in our words.
type Answer struct {
	Code leasehold.Code // 0: granted
	Text string         // all of it, for people
}

// HTTP is the client half of an adapter for a door that speaks HTTP.
type HTTP struct {
	Client *http.Client

	// Code returns what an answer says; 0 if it grants.
	Code func(r *http.Response, body string) leasehold.Code
}

// NewHTTP returns a client whose connections are made by dial.
func NewHTTP(dial Dialer, code func(*http.Response, string) leasehold.Code) *HTTP {
	return &HTTP{&http.Client{Transport: &http.Transport{DialContext: dial}}, code}
}

// Secret is the token of somebody who may do everything, where access is on.
var Secret, secretHash = credential.NewToken()

// Ask sends a request and reads the answer. A request without a credential has Secret.
func (h *HTTP) Ask(r *http.Request) (Answer, error) {
	if r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+Secret)
	}
	answer, err := h.Client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return Answer{}, err
	}
	text := answer.Status + " " + string(body)
	return Answer{h.Code(answer, string(body)), text}, nil
}

// Close closes all connections.
func (h *HTTP) Close() { h.Client.CloseIdleConnections() }
