package terraform

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
)

func TestContract(t *testing.T) {
	doortest.Run(t, &doortest.Adapter{
		Name: "terraform", Resource: "terraform/prod", Waits: true, Undecided: leasehold.Unavailable,
		Open: func(_ testing.TB, b *door.Backend) door.Door { return New(b, Config{}).Door() },
		Dial: func(_ testing.TB, dial doortest.Dialer) doortest.Client {
			return contractClient{doortest.NewHTTP(dial, codeOfStatus)}
		},
		Bad: []string{"LOCK /terraform/prod HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{\"I"},
	})
}

// A contractClient asks as Terraform does.
type contractClient struct{ *doortest.HTTP }

// codeOfStatus reads what Terraform reads: the status.
func codeOfStatus(r *http.Response, _ string) leasehold.Code {
	switch r.StatusCode {
	case http.StatusOK:
		return 0
	case http.StatusLocked:
		return leasehold.Held
	case http.StatusForbidden:
		return leasehold.Denied
	case http.StatusTooManyRequests:
		return leasehold.Limited
	case http.StatusServiceUnavailable:
		return leasehold.Unavailable
	case http.StatusConflict:
		return leasehold.Lost
	}
	return leasehold.Invalid
}

func (c contractClient) ask(ctx context.Context, method, query, id, site string) (doortest.Answer, error) {
	body := strings.NewReader(fmt.Sprintf(`{"ID":%q,"Who":%q,"Operation":"apply"}`, id, id))
	r, err := http.NewRequestWithContext(ctx, method, "http://server/terraform/prod"+query, body)
	if err != nil {
		return doortest.Answer{}, err
	}
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	return c.Ask(r)
}

func (c contractClient) Acquire(ctx context.Context, holder string, wait time.Duration) (doortest.Answer, error) {
	return c.ask(ctx, "LOCK", "?wait="+wait.String(), holder, "")
}

func (c contractClient) Release(ctx context.Context, holder string) (doortest.Answer, error) {
	return c.ask(ctx, "UNLOCK", "", holder, "")
}

func (c contractClient) Intrude(ctx context.Context) (doortest.Answer, error) {
	return c.ask(ctx, "LOCK", "", "eve", "cross-site")
}
