package console

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold/internal/door"
)

// root answers at /: browsers get the console, others a text.
func (d *Door) root() http.Handler {
	page, text := d.files[index], greeter(d.backend)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept")
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			page.ServeHTTP(w, r)
			return
		}
		text(w, r)
	})
}

// greeter says what this is, to somebody who asks without a browser.
func greeter(b *door.Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		secure(h)
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, fmt.Sprintf(
			`This is Leasehold %s. It grants leases: one holder at a time, until a moment, with a
token that tells a late holder from the present one.

Hold something for half a minute:

  leasehold acquire demo/first --ttl 30s --holder me

or without the command line:

  curl %s/v1/acquire --json '{"resource": "demo/first", "holder": "me", "ttl": "30s"}'

Look at it:

  curl %[2]s/v1/resources/demo/first

/v1/openapi.yaml describes the API. /readyz, /livez, /metrics and /version are for operators.
`, b.Version().Version, origin(r)))
	}
}

// origin is the address of this server as the client called it.
func origin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
