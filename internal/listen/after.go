package listen

import "net/http"

// After lets the handler of a request over HTTP/2 return before its answer is complete. The port then calls wait, which
// returns when the answer is, and only after that it returns to net/http. It reports false if the request did not come
// that way. r is the request as the port handed it over; of it only the context may be used from then on.
//
// Go never makes the stack of a goroutine smaller than four times what it uses. At the depth of a door that is twice
// of what it is here, and the request with its headers could not be freed.
func After(r *http.Request, wait func()) bool {
	conn := Carrier(r)
	if r.ProtoMajor < 2 || conn == nil || conn.host == nil {
		return false
	}
	conn.host.after.Store(r, wait)
	return true
}

// waitAfter waits for the answer of a request whose handler has returned.
func (h *Host) waitAfter(r *http.Request) {
	if wait, ok := h.after.LoadAndDelete(r); ok {
		r.Header, r.URL, r.RequestURI, r.Host, r.RemoteAddr, r.Pattern = nil, nil, "", "", "", ""
		wait.(func())()
	}
}
