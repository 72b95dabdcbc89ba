package telemetry

import (
	"net/http"
	"net/http/pprof"
)

// PprofHandler answers /debug/pprof/. It shows command lines and memory and can
// slow a server down, so it belongs on a listener of its own that only the
// machine itself can reach, never on the one that clients use.
func PprofHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
