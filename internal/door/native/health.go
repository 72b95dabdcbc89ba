package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// readyTime is how long an engine may take to be read and still count as ready. From a
// follower it takes two round trips between servers, which may take a second each.
const readyTime = 5 * time.Second

// A check is one thing that has to be true of a server.
type check struct {
	name string
	err  error
}

// livez says that the process runs. It asks nothing of the engine: a server that
// waits for others must not be restarted for it.
func (d *Door) livez(w http.ResponseWriter, r *http.Request) {
	report(w, r, []check{{name: "ping"}}, nil)
}

// readyz says that requests can be sent here.
func (d *Door) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, knows := d.monitors(r)
	quarantine, err := d.readable(ctx, knows)
	warnings := d.backend.Warnings(ctx)
	if quarantine != "" {
		warnings = append(warnings, quarantine)
	}
	report(w, r, []check{{"serving", d.serving()}, {"engine", err}}, warnings)
}

// monitors returns a context for who asks, and reports whether it may see how the server does.
func (d *Door) monitors(r *http.Request) (context.Context, bool) {
	if d.backend.Starting() {
		return r.Context(), true
	}
	proof, err := d.backend.Login(r, door.Bearer)
	ctx := door.WithProof(r.Context(), proof)
	return ctx, err == nil && d.backend.Monitors(ctx) == nil
}

func (d *Door) serving() error {
	if d.backend.Stopping().Err() != nil {
		return errors.New("the server is stopping")
	}
	return nil
}

// readable checks that the engine can be read, and returns a warning if that shows a quarantine: such a
// server is ready, since it renews and releases, and still grants nothing. Those who may not monitor
// the server are not told of that.
func (d *Door) readable(ctx context.Context, monitors bool) (warning string, err error) {
	if d.backend.Starting() {
		return "", errors.New(door.StartingMessage)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if monitors {
		err = d.backend.Read(ctx, func(v core.View) { warning = quarantineWarning(v.Quarantine()) })
	} else if d.backend.Ready(ctx) != nil {
		return "", errors.New("nothing can be read at the moment")
	}
	if err != nil && ctx.Err() != nil {
		return "", fmt.Errorf("nothing could be read within %s: %w", readyTime, err)
	}
	return warning, err
}

// report writes checks the way that Kubernetes does, where people have learnt to
// read them. Warnings follow whatever else it says.
func report(w http.ResponseWriter, r *http.Request, checks []check, warnings []string) {
	status, lines := http.StatusOK, strings.Builder{}
	for _, c := range checks {
		if c.err != nil {
			status = http.StatusServiceUnavailable
			fmt.Fprintf(&lines, "[-]%s failed: %v\n", c.name, c.err)
			continue
		}
		fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
	}
	warned := strings.Builder{}
	for _, warning := range warnings {
		fmt.Fprintf(&warned, "[!]%s\n", warning)
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case status != http.StatusOK:
		text(w, status, lines.String()+warned.String()+name+" check failed\n")
	case r.URL.Query().Has("verbose"):
		text(w, status, lines.String()+warned.String()+name+" check passed\n")
	case warned.Len() > 0:
		text(w, status, "ok\n"+warned.String())
	default:
		text(w, status, "ok")
	}
}

func (d *Door) version(w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(d.backend.Version())
	write(w, jsonType, http.StatusOK, append(body, '\n'))
}

func (d *Door) openapi(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = []string{"application/yaml"}, noStore, noSniff
	_, _ = w.Write([]byte(v1.OpenAPI))
}

// index greets who opens the address in a browser.
func (d *Door) index(w http.ResponseWriter, r *http.Request) {
	address := "http://" + r.Host
	if r.TLS != nil {
		address = "https://" + r.Host
	}
	text(w, http.StatusOK, fmt.Sprintf(
		`This is Leasehold %s. It grants leases: one holder at a time, until a moment, with a
token that tells a late holder from the present one.

Hold something for half a minute:

  leasehold acquire demo/first --ttl 30s --holder me

or without the command line:

  curl %s/v1/acquire --json '{"resource": "demo/first", "holder": "me", "ttl": "30s"}'

Look at it:

  curl %[2]s/v1/resources/demo/first

/v1/openapi.yaml describes the API. /readyz, /livez, /metrics and /version are for operators.
`, d.backend.Version().Version, address))
}
