package native

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
)

func TestContract(t *testing.T) {
	doortest.Run(t, &doortest.Adapter{
		Name: "native", Resource: "r", Waits: true, Undecided: leasehold.Undecided,
		Open: func(_ testing.TB, b *door.Backend) door.Door { return New(b).Door() },
		Dial: func(_ testing.TB, dial doortest.Dialer) doortest.Client {
			return &contractClient{doortest.NewHTTP(dial, codeOfProblem), map[string]string{}}
		},
		Bad: []string{"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{\"resourc"},
	})
}

// A contractClient asks as a program without our library would.
type contractClient struct {
	*doortest.HTTP
	ids map[string]string // of leases that were waited for, by holder
}

func codeOfProblem(r *http.Response, body string) leasehold.Code {
	if r.StatusCode < 300 {
		return 0
	}
	var p v1.Problem
	_ = json.Unmarshal([]byte(body), &p)
	for _, code := range leasehold.Codes {
		if code.String() == p.Code {
			return code
		}
	}
	return leasehold.Undecided
}

func (c *contractClient) post(ctx context.Context, verb string, body any) (doortest.Answer, error) {
	text, _ := json.Marshal(body)
	r, err := http.NewRequestWithContext(ctx, "POST", "http://server/v1/"+verb, bytes.NewReader(text))
	if err != nil {
		return doortest.Answer{}, err
	}
	return c.Ask(r)
}

// Acquire proposes an id, unless it waits: what has an id keeps its place when its client leaves.
func (c *contractClient) Acquire(ctx context.Context, holder string, wait time.Duration) (doortest.Answer, error) {
	ask := v1.AcquireRequest{Resource: "r", Holder: holder, TTL: v1.TTL{None: true}, Wait: v1.Duration(wait)}
	if wait == 0 {
		ask.ID = holder
	}
	return c.post(ctx, "acquire", ask)
}

func (c *contractClient) Release(ctx context.Context, holder string) (doortest.Answer, error) {
	return c.post(ctx, "release", v1.ReleaseRequest{ID: holder})
}

func (c *contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://server/v1/acquire", nil)
	if err != nil {
		return doortest.Answer{}, err
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	return c.Ask(r)
}
