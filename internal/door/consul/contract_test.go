package consul

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
)

func TestContract(t *testing.T) {
	doortest.Run(t, &doortest.Adapter{
		Name: "consul", Resource: "jobs/x", Undecided: leasehold.Unavailable,
		Open: func(_ testing.TB, b *door.Backend) door.Door {
			d := New(b, Config{})
			port := d.Port("")
			port.Opened = nil // which would wait for an hour
			return door.Door{Port: port}
		},
		Prepare: func(t testing.TB, e engine.Engine) {
			for _, who := range []string{"ann", "bob", "cyd"} {
				command := &core.OpenSession{Namespace: leasehold.DefaultNamespace, ID: who, TTL: leasehold.MaxTTL}
				if _, err := e.Do(context.Background(), command); err != nil {
					t.Fatal(err)
				}
			}
		},
		Dial: func(_ testing.TB, dial doortest.Dialer) doortest.Client {
			return contractClient{doortest.NewHTTP(dial, codeOfAnswer)}
		},
		Bad: []string{
			"PUT /v1/kv/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nv",
			"PUT /v1/session/create HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{",
			"GET /v1/kv/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /v1/kv/a?index=%zz HTTP/1.1\r\nHost: x\r\n\r\n",
		},
	})
}

// A contractClient acquires for sessions that are there.
type contractClient struct{ *doortest.HTTP }

func codeOfAnswer(r *http.Response, body string) leasehold.Code {
	switch r.StatusCode {
	case http.StatusOK:
		if body == "false" {
			return leasehold.Held
		}
		return 0
	case http.StatusForbidden:
		return leasehold.Denied
	case http.StatusTooManyRequests:
		return leasehold.Limited
	case http.StatusInternalServerError:
		return leasehold.Unavailable
	case http.StatusNotFound:
		return leasehold.NotFound
	}
	return leasehold.Invalid
}

func (c contractClient) put(ctx context.Context, query, site string) (doortest.Answer, error) {
	r, err := http.NewRequestWithContext(ctx, "PUT", "http://server/v1/kv/jobs/x?"+query, strings.NewReader(""))
	if err != nil {
		return doortest.Answer{}, err
	}
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	return c.Ask(r)
}

func (c contractClient) Acquire(ctx context.Context, holder string, _ time.Duration) (doortest.Answer, error) {
	return c.put(ctx, "acquire="+holder, "")
}

func (c contractClient) Release(ctx context.Context, holder string) (doortest.Answer, error) {
	return c.put(ctx, "release="+holder, "")
}

func (c contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	return c.put(ctx, "acquire=ann", "cross-site")
}
