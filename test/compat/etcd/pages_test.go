//go:build linux

package etcd

import (
	"io"
	"net/http"
	"testing"

	"github.com/leasehold/leasehold/internal/peer"
	"github.com/leasehold/leasehold/test/process"
)

// The pages at which probes and scripts look say the same.
func TestPages(t *testing.T) {
	real := peer.StartEtcd(t, peer.EtcdConfig{})
	own := process.Reserve(t)
	leasehold(t, 1, "--etcd-listen", own)
	get := func(method, url string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for _, page := range []string{"/health", "/version", "/livez", "/livez?verbose", "/livez/serializable_read",
		"/livez/nothing", "/readyz", "/readyz?exclude=linearizable_read", "/readyz/linearizable_read"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if method == http.MethodPost && page != "/livez" {
				continue
			}
			wantCode, want := get(method, real.Endpoints()[0]+page)
			code, text := get(method, "http://"+own+page)
			if code != wantCode || page != "/health" && page != "/version" && text != want {
				t.Errorf("%s %s is %d %q, and of etcd %d %q", method, page, code, text, wantCode, want)
			}
		}
	}
}
