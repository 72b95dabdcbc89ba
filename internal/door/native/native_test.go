package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newDoor returns a door to an engine in memory, which is checked at the end.
func newDoor(t testing.TB, config Config) *opened {
	t.Helper()
	e := memory.Start(engine.NewGoClock())
	t.Cleanup(func() {
		if err := e.Check(); err != nil {
			t.Errorf("the state contradicts itself: %v", err)
		}
		e.Close()
	})
	return open(e, config)
}

// An answer is what a door said.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// ask sends one request to a door, without a network, and checks the answer
// against openapi.yaml. Headers are pairs of name and value.
func ask(t testing.TB, door http.Handler, method, target, body string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	door.ServeHTTP(w, r)
	got := answer{t, w.Code, w.Header(), w.Body.String()}
	checkDescribed(t, r, got)
	return got
}

// expect fails unless the answer has a status and holds some texts.
func (a answer) expect(status int, texts ...string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status is %d, want %d: %s", a.status, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			a.t.Errorf("the answer has no %s: %s", text, a.body)
		}
	}
	return a
}

// without fails if the answer holds a text.
func (a answer) without(text string) answer {
	a.t.Helper()
	if strings.Contains(a.body, text) {
		a.t.Errorf("the answer has %s: %s", text, a.body)
	}
	return a
}

// read reads the answer into one of the API's types, all of it.
func read[T any](a answer) (value T) {
	a.t.Helper()
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		a.t.Fatalf("the answer can not be read: %v: %s", err, a.body)
	}
	return value
}

var description = sync.OnceValue(func() *openapi3.T {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(v1.OpenAPI))
	if err != nil {
		panic(err)
	}
	return doc
})

// described is where openapi.yaml speaks of a pattern of the mux.
func described(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{path...}", "{path}", "{name...}", "{name}", "{$}", "").Replace(path)
}

// checkDescribed fails unless an answer is one that openapi.yaml describes.
func checkDescribed(t testing.TB, r *http.Request, a answer) {
	t.Helper()
	schema := problemSchema()
	if method, path := described(r.Pattern); path != "" && r.Method != http.MethodHead {
		operation := description().Paths.Value(path).GetOperation(method)
		response := operation.Responses.Status(a.status)
		if response == nil {
			t.Errorf("openapi.yaml has no status %d for %s: %s", a.status, r.Pattern, a.body)
			return
		}
		kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
		media := response.Value.Content[kind]
		if media == nil {
			t.Errorf("openapi.yaml has no %s for %s, %d: %s", kind, r.Pattern, a.status, a.body)
			return
		}
		schema = media.Schema.Value
	} else if a.status < 400 {
		return
	}
	if schema.Type.Is("string") {
		return
	}
	var value any
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Errorf("the answer of %s is not JSON: %v: %s", r.Pattern, err, a.body)
	} else if err := schema.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("the answer of %s is not what openapi.yaml says: %v: %s", r.Pattern, err, a.body)
	}
}

func problemSchema() *openapi3.Schema { return description().Components.Schemas["Problem"].Value }

// A house is a whole server in a bubble: engine, door, listener, and a client.
type house struct {
	t      *testing.T
	engine *memory.Engine
	door   *opened
	pipe   *doortest.Pipe
	client *http.Client
	caller *v1.Caller
	stop   context.CancelFunc
	ended  chan error
}

// build starts a house. It has to be closed in the bubble it was built in.
func build(t *testing.T, config Config) *house {
	t.Helper()
	h := &house{t: t, engine: memory.Start(engine.NewGoClock()), pipe: doortest.NewPipe(), ended: make(chan error, 1)}
	h.door = open(h.engine, config)
	h.client = &http.Client{Transport: &http.Transport{DialContext: h.pipe.Dial, MaxIdleConnsPerHost: 100}}
	caller, err := v1.NewCaller(v1.CallerConfig{Server: "http://pipe", Client: h.client})
	if err != nil {
		t.Fatal(err)
	}
	h.caller = caller
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	go func() { h.ended <- h.door.Serve(ctx, h.pipe) }()
	return h
}

// close ends the house, and fails if that is not clean.
func (h *house) close() {
	h.t.Helper()
	h.stop()
	if err := <-h.ended; err != nil {
		h.t.Errorf("the server ended with: %v", err)
	}
	h.client.CloseIdleConnections()
	if err := h.engine.Check(); err != nil {
		h.t.Errorf("the state contradicts itself: %v", err)
	}
	h.engine.Close()
}

func (h *house) acquire(r v1.AcquireRequest) v1.Lease {
	h.t.Helper()
	l, err := h.caller.Acquire(h.t.Context(), r)
	if err != nil {
		h.t.Fatal(err)
	}
	return l
}

func (h *house) resource(path string) v1.Resource {
	h.t.Helper()
	r, err := h.caller.Resource(h.t.Context(), path, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// A stub is an engine that answers what it is told to.
type stub struct {
	err  error
	feed *engine.Feed
}

func (s *stub) Do(context.Context, core.Command) (core.Answer, error) { return core.Answer{}, s.err }
func (s *stub) Submit(batch []engine.Submission)                      { engine.SubmitEach(s.Do, batch) }
func (s *stub) Read(context.Context, func(core.View)) error           { return s.err }
func (s *stub) Level() core.Level                                     { return core.NewestLevel }
func (s *stub) Journal() audit.Book                                   { return nil }

func (s *stub) Feed() *engine.Feed {
	if s.feed == nil {
		return engine.NewFeed()
	}
	return s.feed
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// acquireCommand is a lease that ends when it begins: its resource is soon
// forgotten, its event is not.
func acquireCommand(i int, reason string) core.Command {
	return &core.Acquire{Namespace: "default", Resource: fmt.Sprint("many/", i), ID: fmt.Sprint("many", i), Holder: "h", Reason: reason}
}

// value reads a gauge.
func value(g prometheus.Gauge) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		panic(err)
	}
	return m.GetGauge().GetValue()
}

// counted reads a counter.
func counted(c prometheus.Counter) float64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		panic(err)
	}
	return m.GetCounter().GetValue()
}
