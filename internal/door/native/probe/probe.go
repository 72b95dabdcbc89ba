// Package probe answers what operators and load balancers ask a server: whether it lives, is ready, its version and its
// numbers. It needs no right, and shows less to those who have none.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// A Prober answers for one server.
type Prober struct {
	Backend *door.Backend
	Problem func(http.ResponseWriter, error) // answers with an error
}

// readyTime is how long an engine may take to be read and still count as ready. From a
// follower it takes two round trips between servers, which may take a second each.
const readyTime = 5 * time.Second

// A check is one thing that has to be true of a server.
type check struct {
	name string
	err  error
}

// Livez says that the process runs. It asks nothing of the engine: a server that
// waits for others must not be restarted for it.
func (d *Prober) Livez(w http.ResponseWriter, r *http.Request) {
	report(w, r, []check{{name: "ping"}}, nil)
}

// Readyz says that requests can be sent here.
func (d *Prober) Readyz(w http.ResponseWriter, r *http.Request) {
	ctx, knows := d.monitors(r)
	quarantine, err := d.readable(ctx, knows)
	warnings := d.Backend.Warnings(ctx)
	if quarantine != "" {
		warnings = append(warnings, quarantine)
	}
	report(w, r, []check{{"serving", d.serving()}, {"engine", err}}, warnings)
}

// monitors returns a context for who asks, and reports whether it may see how the server does.
func (d *Prober) monitors(r *http.Request) (context.Context, bool) {
	if d.Backend.Starting() || !d.Backend.AccessOn() {
		return r.Context(), true
	}
	proof, err := d.Backend.Login(r, door.Bearer)
	ctx := door.WithProof(r.Context(), proof)
	return ctx, err == nil && d.Backend.Monitors(ctx) == nil
}

func (d *Prober) serving() error {
	if d.Backend.Stopping().Err() != nil {
		return errors.New("the server is stopping")
	}
	return nil
}

// readable checks that the engine can be read, and returns a warning if that shows a quarantine: such a
// server is ready, since it renews and releases, and still grants nothing. Those who may not monitor
// the server are not told of that.
func (d *Prober) readable(ctx context.Context, monitors bool) (warning string, err error) {
	if d.Backend.Starting() {
		return "", errors.New(door.StartingMessage)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	if monitors {
		err = d.Backend.Read(ctx, func(v core.View) { warning = quarantineWarning(v.Quarantine()) })
	} else if d.Backend.Ready(ctx) != nil {
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

// Version tells the version of the program, and what clients of other doors look for at this path.
func (d *Prober) Version(w http.ResponseWriter, _ *http.Request) {
	body, _ := json.Marshal(d.Backend.Version())
	if added := d.Backend.VersionFields(); len(added) > 0 {
		more, _ := json.Marshal(added)
		body = append(append(body[:len(body)-1], ','), more[1:]...)
	}
	head(w, "application/json")
	_, _ = w.Write(append(body, '\n'))
}

// OpenAPI describes the API.
func (d *Prober) OpenAPI(w http.ResponseWriter, _ *http.Request) {
	head(w, "application/yaml")
	_, _ = w.Write([]byte(v1.OpenAPI))
}

// Metrics answers those who may see how the server does.
func (d *Prober) Metrics(w http.ResponseWriter, r *http.Request) {
	if !d.Backend.Starting() && d.Backend.AccessOn() {
		proof, err := d.Backend.Login(r, door.Bearer)
		if err == nil {
			err = d.Backend.Monitors(door.WithProof(r.Context(), proof))
		}
		if err != nil {
			d.Problem(w, err)
			return
		}
	}
	d.Backend.Metrics().Handler().ServeHTTP(w, r)
}

func head(w http.ResponseWriter, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

func text(w http.ResponseWriter, status int, body string) {
	head(w, "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// quarantineWarning is what /readyz says of a quarantine; empty if there is none.
func quarantineWarning(q core.Quarantine, active bool) string {
	if !active {
		return ""
	}
	return fmt.Sprintf("quarantine: nothing is granted for another %s, since this cluster was restored from a backup. "+
		"To end it early: leasehold cluster end-quarantine", q.Left.Round(time.Second))
}
