package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

func TestContract(t *testing.T) {
	doortest.Run(t, &doortest.Adapter{
		Name: "kubernetes", Resource: "kubernetes/ns/op", Undecided: leasehold.Undecided,
		Open: func(_ testing.TB, b *door.Backend) door.Door { return New(b, Config{Strict: parseSpaces("ns")}).Door() },
		Dial: func(_ testing.TB, dial doortest.Dialer) doortest.Client {
			return contractClient{doortest.NewHTTP(dial, codeOfStatus)}
		},
		Bad: []string{
			"PUT " + leases + "/op HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{\"m",
			"POST " + leases + " HTTP/1.1\r\nHost: x\r\nContent-Type: " + object.Protobuf + "\r\nContent-Length: 5\r\n\r\nk8s\x00\xff",
		},
	})
}

// A contractClient asks as an elector does in a namespace that is strict: it looks, and then writes.
type contractClient struct{ *doortest.HTTP }

func codeOfStatus(r *http.Response, _ string) leasehold.Code {
	switch r.StatusCode {
	case http.StatusOK, http.StatusCreated:
		return 0
	case http.StatusConflict:
		return leasehold.Held
	case http.StatusForbidden:
		return leasehold.Denied
	case http.StatusTooManyRequests:
		return leasehold.Limited
	case http.StatusServiceUnavailable:
		return leasehold.Unavailable
	case http.StatusGatewayTimeout:
		return leasehold.Undecided
	case http.StatusNotFound:
		return leasehold.NotFound
	}
	return leasehold.Invalid
}

func (c contractClient) send(ctx context.Context, method, path, body, site string) (doortest.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://server"+leases+path, strings.NewReader(body))
	if err != nil {
		return doortest.Answer{}, err
	}
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	return c.Ask(r)
}

// write tries again when somebody else was faster.
func (c contractClient) write(ctx context.Context, holder string) (doortest.Answer, error) {
	for {
		got, err := c.writeOnce(ctx, holder)
		if err != nil || !strings.Contains(got.Text, "has been modified") && !strings.Contains(got.Text, "AlreadyExists") {
			return got, err
		}
	}
}

// writeOnce writes a holder into the object as it is, or makes it.
func (c contractClient) writeOnce(ctx context.Context, holder string) (doortest.Answer, error) {
	got, err := c.send(ctx, "GET", "/op", "", "")
	switch {
	case err != nil || got.Code != 0 && got.Code != leasehold.NotFound:
		return got, err
	case got.Code == leasehold.NotFound && holder == "":
		return doortest.Answer{}, errors.New("there is nothing to release")
	case got.Code == leasehold.NotFound:
		return c.send(ctx, "POST", "", `{"metadata":{"name":"op"},"spec":{"holderIdentity":"`+holder+`"}}`, "")
	}
	_, text, _ := strings.Cut(got.Text, "{")
	tree, _, err := object.ParseTree([]byte("{" + text))
	if err != nil {
		return got, err
	}
	l, _, err := object.FromTree(tree)
	if err != nil {
		return got, err
	}
	l.Spec.Holder, l.Spec.RenewTime = &holder, object.NewMicroTime(time.Now())
	body, err := l.JSON()
	if err != nil {
		return got, err
	}
	return c.send(ctx, "PUT", "/op", string(body), "")
}

func (c contractClient) Acquire(ctx context.Context, holder string, _ time.Duration) (doortest.Answer, error) {
	return c.write(ctx, holder)
}

func (c contractClient) Release(ctx context.Context, _ string) (doortest.Answer, error) {
	return c.write(ctx, "")
}

func (c contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	return c.send(ctx, "POST", "", `{"metadata":{"name":"op"}}`, "cross-site")
}
