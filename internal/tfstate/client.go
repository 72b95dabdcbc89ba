package tfstate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Client asks the Terraform door of a server what the command line wants to know. It speaks the
// same protocol as Terraform does. Its errors are those of a v1.Caller.
type Client struct{ Caller *v1.Caller }

// List returns all states whose names begin with a prefix: those of the http backend, then those of
// the azurerm backend.
func (c Client) List(ctx context.Context, prefix string) ([]State, error) {
	if blob, ok := strings.CutPrefix(prefix, AzureMark); ok {
		return c.list(ctx, "/azurerm/", blob)
	}
	states, err := c.list(ctx, "/terraform/", prefix)
	if err != nil || !strings.HasPrefix(AzureMark, prefix) {
		return states, err
	}
	blobs, err := c.list(ctx, "/azurerm/", "")
	if errors.Is(err, leasehold.ErrNotFound) {
		return states, nil // a server that does not list them yet
	}
	return append(states, blobs...), err
}

func (c Client) list(ctx context.Context, address, prefix string) ([]State, error) {
	states := []State{}
	for after := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(MaxLimit)}}
		if prefix != "" {
			query.Set("prefix", prefix)
		}
		if after != "" {
			query.Set("after", after)
		}
		var page Page[State]
		if err := c.get(ctx, address, query, &page); err != nil {
			return nil, err
		}
		states = append(states, page.Items...)
		if after = page.Next; after == "" {
			return states, nil
		}
	}
}

// Info returns what is known of one state.
func (c Client) Info(ctx context.Context, state string) (s State, err error) {
	if err := CheckState(state); err != nil {
		return s, err
	}
	return s, c.get(ctx, Address(state), url.Values{"info": {"true"}}, &s)
}

// Versions returns the versions of a state, newest first.
func (c Client) Versions(ctx context.Context, state string) ([]Version, error) {
	if err := CheckState(state); err != nil {
		return nil, err
	}
	var page Page[Version]
	err := c.get(ctx, Address(state), url.Values{"versions": {"true"}}, &page)
	return page.Items, err
}

// Read returns the bytes of a state, or of one of its versions; 0 for the current one.
func (c Client) Read(ctx context.Context, state string, revision uint64) ([]byte, error) {
	if err := CheckState(state); err != nil {
		return nil, err
	}
	query := url.Values{}
	if revision != 0 {
		query.Set("version", strconv.FormatUint(revision, 10))
	}
	return c.send(ctx, v1.DoorRequest{Method: http.MethodGet, Path: Address(state), Query: query})
}

// Lock locks a state for a limited time, which each write extends: a command that is killed leaves
// no lock behind that somebody would have to break.
func (c Client) Lock(ctx context.Context, state string, info LockInfo, wait time.Duration) error {
	if err := CheckState(state); err != nil {
		return err
	}
	query := url.Values{"ttl": {ttl.String()}}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	_, err := c.send(ctx, v1.DoorRequest{Method: "LOCK", Path: Address(state), Query: query, Body: info.encode()})
	return err
}

// ttl is how long a lock of the command line lasts after its last request. That is enough to read,
// edit and write a large state over a slow line.
const ttl = 2 * time.Minute

// Write writes a state under a lock.
func (c Client) Write(ctx context.Context, state, id string, body []byte, force bool) error {
	query := url.Values{"ID": {id}}
	if force {
		query.Set("force", "true")
	}
	_, err := c.send(ctx, v1.DoorRequest{Method: http.MethodPost, Path: Address(state), Query: query, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}}})
	return err
}

// AllowLineage lets a state be replaced once, within a time, by one of another lineage.
func (c Client) AllowLineage(
	ctx context.Context, state string, asked Permit, last time.Duration,
) (p Permit, err error) {
	if err := CheckState(state); err != nil {
		return p, err
	}
	answer, err := c.send(ctx, v1.DoorRequest{Method: http.MethodPost, Path: Address(state),
		Query: url.Values{"allow-lineage": {last.String()}}, Body: []byte(asked.Encode())})
	if err == nil {
		err = readAnswer(answer, &p)
	}
	return p, err
}

// Unlock releases a lock.
func (c Client) Unlock(ctx context.Context, state string, info LockInfo) error {
	_, err := c.send(ctx, v1.DoorRequest{Method: "UNLOCK", Path: Address(state), Body: info.encode()})
	return err
}

func (l LockInfo) encode() []byte {
	text, _ := json.Marshal(l) // strings alone
	return text
}

func (c Client) get(ctx context.Context, path string, query url.Values, into any) error {
	body, err := c.send(ctx, v1.DoorRequest{Method: http.MethodGet, Path: path, Query: query})
	if err == nil {
		err = readAnswer(body, into)
	}
	return err
}

func readAnswer(body []byte, into any) error {
	if json.Unmarshal(body, into) != nil {
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "the answer cannot be read: is it a Leasehold " +
			"server?"}
	}
	return nil
}

func (c Client) send(ctx context.Context, r v1.DoorRequest) ([]byte, error) {
	response, err := c.Caller.Door(ctx, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, response.Body); err != nil {
		return nil, &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf("the answer broke off: %v", err)}
	}
	return body.Bytes(), nil
}
