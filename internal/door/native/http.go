package native

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/door/native/jsonbody"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// An httpWire is a request over HTTP, with its answer.
type httpWire struct {
	w http.ResponseWriter
	r *http.Request
}

// An httpCall is a call over HTTP, in one piece.
type httpCall struct {
	call
	httpWire
}

func (d *Door) newHTTPCall(w http.ResponseWriter, r *http.Request) *call {
	h := &httpCall{httpWire: httpWire{w, r}}
	h.call = call{wire: &h.httpWire, door: d, ctx: r.Context()}
	return &h.call
}

func (d *Door) handler(o *accounted) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		c := d.newHTTPCall(w, r)
		d.sayLevel(w)
		err := c.login(r)
		if err == nil {
			err = c.open(r, o.operation)
		}
		if err == nil {
			err = c.run(&o.action)
		}
		c.noteDenied(o.operation, err)
		if err != nil && err != errCut {
			problem(w, err)
		}
		o.account.Done(r.Context(), telemetry.Outcome{
			Namespace: c.namespace, Err: err, Took: time.Since(began),
			Waited: c.waited, Endless: o.endless(), Expected: err != nil && d.backend.Expected(r),
		})
		if err == errCut {
			panic(http.ErrAbortHandler) // which net/http knows, and cuts the connection for
		}
	}
}

// refuse answers why the port does not let a request in. One that was meant for an operation is
// counted there, and noted if it had no right.
func (d *Door) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if o := d.asked[r.Pattern]; o != nil {
		began := time.Now()
		c := d.newHTTPCall(w, r)
		if !d.backend.Starting() {
			d.sayLevel(w)
			c.noteDenied(o.operation, err)
		}
		if c.namespace == "" {
			_ = c.space(c, o.operation) // for the log, which has it whatever is wrong with the rest
		}
		o.account.Done(r.Context(), telemetry.Outcome{
			Namespace: c.namespace, Err: err, Took: time.Since(began), Expected: d.backend.Expected(r),
		})
	}
	problem(w, err)
}

// login finds out who sends the request.
func (c *call) login(r *http.Request) (err error) {
	if c.proof, err = c.door.backend.Login(r, door.Bearer); err == nil {
		c.ctx = door.WithProof(c.ctx, c.proof)
	}
	return err
}

// sayLevel tells clients the level of the rules: they send what a level brought only to servers
// that are at it.
func (d *Door) sayLevel(w http.ResponseWriter) {
	level := d.backend.Engine().Level()
	if int(level) < len(levels) {
		w.Header()[v1.LevelHeader] = levels[level]
		return
	}
	w.Header()[v1.LevelHeader] = []string{strconv.FormatUint(uint64(level), 10)}
}

// levels are the values of the header that tells the level.
var levels = [][]string{{"0"}, {"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"6"}, {"7"}, {"8"}, {"9"}}

// open reads what every request has: the namespace and the request's own name.
func (c *call) open(r *http.Request, o *operation) error {
	if err := c.space(c, o); err != nil {
		return err
	}
	return c.readOnce(r.Header[v1.KeyHeader], r.Header[v1.SessionHeader])
}

func (h *httpWire) name() string             { return doorName }
func (h *httpWire) path(name string) string  { return h.r.PathValue(name) }
func (h *httpWire) head(key string) []string { return h.r.Header[key] }
func (h *httpWire) address() string          { return h.r.RemoteAddr }
func (h *httpWire) stream() *httpWire        { return h }

func (h *httpWire) direct() bool {
	return h.r.Header.Get("Forwarded")+h.r.Header.Get("X-Forwarded-For") == ""
}

// space reads the query. A parameter that means nothing here is an error: a
// misspelt namespace must not become the default one.
func (h *httpWire) space(c *call, o *operation) error {
	c.namespace = leasehold.DefaultNamespace
	if h.r.URL.RawQuery == "" {
		return nil // as nearly always: nothing is allocated for it
	}
	if name, ok := strings.CutPrefix(h.r.URL.RawQuery, "namespace="); ok && !o.global() && isPlain(name) {
		c.namespace = name
		return checkName("namespace", name)
	}
	query, err := door.ReadQuery(h.r.URL.RawQuery, o.known()...)
	if err != nil {
		return err
	}
	c.query = query
	if query.Has("namespace") {
		c.namespace = query.Get("namespace")
		return checkName("namespace", c.namespace)
	}
	return nil
}

// isPlain reports whether a value of a query means what it says: it has no escapes, and is the last.
func isPlain(value string) bool {
	for i := range len(value) {
		c := value[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// buffers are for bodies on their way in. What is read from one is copied out of
// it before it is given back.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept is the largest buffer that is kept for the next request: one large body
// must not keep its memory for ever.
const maxKept = 32 << 10

// read reads the body as JSON.
func (h *httpWire) read(into any, most int) (some bool, err error) {
	if h.r.ContentLength == 0 {
		return false, nil
	}
	buffer := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= maxKept {
			buffers.Put(buffer)
		}
	}()
	buffer.Reset()
	if err := checkType(h.r.Header["Content-Type"]); err != nil {
		return false, err
	}
	if err := h.receive(buffer, most); err != nil || buffer.Len() == 0 {
		return false, err
	}
	return true, jsonbody.Parse(buffer.Bytes(), into)
}

// Times of one request on its connection. The server's own limits hold for what
// is answered at once; a request that stays lifts them and limits each write.
const (
	readTime   = door.ReadTime
	writeTime  = door.WriteTime
	streamTime = 10 * time.Second // one write of a watch
)

// stay lifts the limits on how long the request may take. It has been read; what is read
// from now on is only whether the caller is still there.
func (h *httpWire) stay() {
	control := http.NewResponseController(h.w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
}

// within limits the next writes. A writer that has no deadlines, as in some
// tests, does without.
func (h *httpWire) within(d time.Duration) {
	_ = http.NewResponseController(h.w).SetWriteDeadline(time.Now().Add(d))
}

// written lifts the limit on writes until there is another one. HTTP/2 ends a stream whose
// time is up even if nothing is being written; HTTP/1 looks at it only when it writes.
func (h *httpWire) written() {
	if h.r.ProtoMajor >= 2 {
		_ = http.NewResponseController(h.w).SetWriteDeadline(time.Time{})
	}
}

// outgoing are buffers that are reused for answers on their way out.
var outgoing = sync.Pool{New: func() any { return &encode.Buffer{Bytes: make([]byte, 0, 1<<10)} }}

func (h *httpWire) begin() *encode.Buffer {
	b := outgoing.Get().(*encode.Buffer)
	b.Bytes = b.Bytes[:0]
	return b
}

func (h *httpWire) end(b *encode.Buffer) {
	b.Bytes = append(b.Bytes, '\n')
	write(h.w, jsonType, http.StatusOK, b.Bytes)
	if cap(b.Bytes) <= maxKept {
		outgoing.Put(b)
	}
}

func (h *httpWire) nothing() { write(h.w, jsonType, http.StatusOK, nothing) }

// nothing is an object all the same: callers parse it as they do any other.
var nothing = []byte("{}\n")

func (h *httpWire) tell(header, value string) { h.w.Header()[header] = []string{value} }

func (h *httpWire) marshal(value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	h.within(writeTime)
	write(h.w, jsonType, http.StatusOK, append(body, '\n'))
	return nil
}

// The values of headers that never change: a slice for each would be made anew
// with each answer.
var (
	jsonType    = []string{"application/json"}
	problemType = []string{"application/problem+json"}
	streamType  = []string{"text/event-stream"}
	bytesType   = []string{"application/octet-stream"}
	noStore     = []string{"no-store"}
	noSniff     = []string{"nosniff"}
)

// write sends an answer whose headers are set but for the usual ones.
func write(w http.ResponseWriter, contentType []string, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	w.WriteHeader(status)
	// Whether it arrives is not for us to know; the caller has an id to ask again by.
	_, _ = w.Write(body)
}
