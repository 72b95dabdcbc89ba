package listen

import (
	"net/http"
	"path"
	"strings"

	"github.com/leasehold/leasehold"
)

// A refuse answers a request that is not handed to a door, in the form that the door's clients
// read.
type refuse func(w http.ResponseWriter, r *http.Request, err error)

// firstRefuse returns how to refuse requests that belong to no door in particular.
func (h *Host) firstRefuse() refuse {
	for _, doors := range h.config.HTTP {
		if doors.Refuse != nil {
			return doors.Refuse
		}
	}
	return func(w http.ResponseWriter, _ *http.Request, err error) {
		status := http.StatusServiceUnavailable
		if f, ok := err.(*Fault); ok {
			status = f.Status
		}
		http.Error(w, err.Error(), status)
	}
}

// mount puts all routes in one mux, or returns the one route that takes everything.
func (h *Host) mount() http.Handler {
	mux := http.NewServeMux()
	for _, doors := range h.config.HTTP {
		refuse := doors.Refuse
		if refuse == nil {
			refuse = h.refuse
		}
		for _, route := range doors.Routes {
			handler := h.guarded(doors.Name, route, refuse)
			if route.Pattern == "" {
				return handler
			}
			mux.Handle(route.Pattern, handler)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would redirect to a cleaned path, which here is the name of another resource.
		if p := r.URL.EscapedPath(); !tidy(p) {
			h.refuse(w, r, &Fault{&leasehold.Error{Code: leasehold.Invalid, Message: untidy(p)}, http.StatusBadRequest})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// guarded hands requests to a route while the server is up. Stopping is looked at first: a
// client that is told to go elsewhere should be told so at once. Requests from pages of other
// sites are refused, since a browser would send a user's certificate along with them.
func (h *Host) guarded(door string, route Route, refuse refuse) http.Handler {
	origins, stopping := http.NewCrossOriginProtection(), h.state.Stopping()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !route.Late && stopping.Err() != nil:
			leave(w.Header())
			refuse(w, r, unavailable(StoppingMessage))
		case !route.AnySite && origins.Check(r) != nil:
			refuse(w, r, &Fault{&leasehold.Error{Code: leasehold.Denied, Message: otherSite}, http.StatusForbidden})
		case !route.Early && h.state.Starting():
			refuse(w, r, unavailable(StartingMessage+": try another server, or this one in a moment"))
		default:
			Meet(Outer(r), door, r.UserAgent())
			route.Handler.ServeHTTP(w, r)
		}
	})
}

const otherSite = "a page of another site may not ask this: send the request from a program, or from this " +
	"server's own pages"

// ServeHTTP answers one request.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		h.answer(w, r)
		return
	}
	if c := Carrier(r); c != nil {
		if !h.ask(c) {
			h.refuseStranger(w, r, c)
			return
		}
		defer h.answered(c)
		if !c.stranger.known.Load() && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			_ = r.Body.Close() // nobody reads it, and net/http keeps up to 1 MiB for each connection
		}
	}
	h.answer(w, r)
	if c := Carrier(r); c != nil && !c.stranger.known.Load() {
		awaitTaken(w, r)
	}
	h.waitAfter(r)
}

// answer hands a request to its door.
func (h *Host) answer(w http.ResponseWriter, r *http.Request) {
	if c := Outer(r); c != nil {
		if r.TLS == nil && h.config.TLS != nil && h.config.Wrap == nil {
			r.TLS = tlsOf(c) // net/http does not look below a replayed connection
		}
		if conn := ConnOf(c); conn != nil {
			conn.Greeted(r.TLS)
		}
	}
	// A page can make a browser resolve its own name to this server's address (DNS rebinding);
	// the Host header then gives it away.
	if !h.config.Hosts.Allows(r.Host) {
		h.refuse(w, r, &Fault{
			&leasehold.Error{Code: leasehold.Denied, Message: h.config.Hosts.Refusal(r.Host)},
			http.StatusMisdirectedRequest,
		})
		return
	}
	h.handler.ServeHTTP(w, r)
}

func untidy(p string) string {
	const most = 64
	if len(p) > most {
		p = p[:most] + "…"
	}
	return "path \"" + p + "\" has an empty, \".\" or \"..\" segment: write such characters as %2F and %2E " +
		"where they belong to a name"
}

func tidy(p string) bool {
	clean := path.Clean(p)
	return p == "" || p == clean || len(p) == len(clean)+1 && strings.HasSuffix(p, "/") && p[:len(clean)] == clean
}

// leave tells a client to send its next request somewhere else, or later.
func leave(h http.Header) {
	h["Connection"] = []string{"close"}
	h["Retry-After"] = []string{"1"}
}
