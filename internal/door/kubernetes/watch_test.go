package kubernetes

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/listen"
)

// A port is a door at a port in a bubble of virtual time.
type port struct {
	*bench
	backend *door.Backend
	gates   listen.Gates
	header  http.Header // of the next watches
	pipe    *doortest.Pipe
	client  *http.Client
	stop    context.CancelFunc
	ended   chan error
}

func (b *bench) listen() *port {
	p := &port{bench: b, pipe: doortest.NewPipe(), ended: make(chan error, 1)}
	p.client = &http.Client{Transport: &http.Transport{DialContext: p.pipe.Dial}}
	p.backend = door.NewBackend(b.engine, door.Options{Gates: &p.gates})
	host := door.NewHost(p.backend, door.HostConfig{Gates: &p.gates}, New(p.backend, Config{}).Door())
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() { p.ended <- host.Serve(ctx, p.pipe) }()
	return p
}

func (p *port) close() {
	p.client.CloseIdleConnections()
	p.stop()
	<-p.ended
}

// A watcher reads events in JSON.
type watcher struct {
	t     testing.TB
	body  io.ReadCloser
	lines *bufio.Reader
}

// A happened is one event.
type happened struct {
	Type   string
	Object struct {
		Kind     string
		Metadata struct {
			Name, ResourceVersion string
			Annotations           map[string]string
		}
		Spec    struct{ HolderIdentity *string }
		Code    int
		Reason  string
		Message string
	}
}

func (h *happened) String() string {
	s := h.Type + " " + h.Object.Metadata.Name
	if who := h.Object.Spec.HolderIdentity; who != nil {
		s += " " + *who
	}
	return s
}

func (p *port) watch(query string) *watcher {
	p.t.Helper()
	request, err := http.NewRequest("GET", "http://server"+leases+"?watch=true"+query, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header = p.header
	r, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(r.Body)
		p.t.Fatalf("%s: %s", r.Status, text)
	}
	return &watcher{p.t, r.Body, bufio.NewReader(r.Body)}
}

// next reads an event; nil at the end.
func (w *watcher) next() *happened {
	w.t.Helper()
	line, err := w.lines.ReadString('\n')
	if err != nil {
		return nil
	}
	h := &happened{}
	if err := json.Unmarshal([]byte(line), h); err != nil {
		w.t.Fatalf("%v: %s", err, line)
	}
	return h
}

func (w *watcher) expect(want ...string) (last *happened) {
	w.t.Helper()
	for _, text := range want {
		if last = w.next(); last == nil || last.String() != text {
			w.t.Fatalf("got %v, want %s", last, text)
		}
	}
	return last
}

func (w *watcher) close() { _ = w.body.Close() }

// bubble runs a test at a port in virtual time, by HTTP/1.1 and by HTTP/2.
func bubble(t *testing.T, run func(t *testing.T, p *port)) {
	t.Helper()
	t.Run("HTTP/1.1", func(t *testing.T) { oneByOne(t, run) })
	t.Run("HTTP/2", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newBench(t, Config{}).listen()
			defer p.close()
			shared := new(http.Protocols)
			shared.SetUnencryptedHTTP2(true)
			p.client.Transport.(*http.Transport).Protocols = shared
			run(t, p)
		})
	})
}

// oneByOne runs a test at a port by HTTP/1.1, where each request has the connection for itself.
func oneByOne(t *testing.T, run func(t *testing.T, p *port)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newBench(t, Config{}).listen()
		defer p.close()
		run(t, p)
	})
}

func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		first := p.ask("POST", leases, held("a", "ann", 60)).expect(201).lease()
		since := p.watch("&resourceVersion=" + first.Meta.ResourceVersion)
		all := p.watch("")
		labelled := p.watch("&labelSelector=x%3D1")
		named := p.watch("&fieldSelector=metadata.name%3Db")
		p.ask("POST", strings.Replace(leases, "/ns/", "/ns2/", 1), held("elsewhere", "ann", 60)).expect(201)
		p.ask("POST", leases, held("b", "bob", 60)).expect(201)
		for _, label := range []string{`"1"`, `"2"`} {
			p.ask("PATCH", leases+"/b", `{"metadata":{"labels":{"x":`+label+`}}}`, "Content-Type", mergePatch).expect(200)
		}
		p.ask("DELETE", leases+"/b", "").expect(200)
		all.expect("ADDED a ann")
		gone := all.expect("ADDED b bob", "MODIFIED b bob", "MODIFIED b bob", "DELETED b bob")
		since.expect("ADDED b bob", "MODIFIED b bob", "MODIFIED b bob", "DELETED b bob")
		labelled.expect("ADDED b bob", "DELETED b bob")
		named.expect("ADDED b bob", "MODIFIED b bob", "MODIFIED b bob", "DELETED b bob")
		if now := p.list(leases).Metadata.ResourceVersion; gone.Object.Metadata.ResourceVersion != now {
			t.Errorf("the delete has the version %s, and the list %s", gone.Object.Metadata.ResourceVersion, now)
		}
		// Time ends a lease.
		time.Sleep(62 * time.Second)
		all.expect("MODIFIED a ")
		for _, w := range []*watcher{since, all, labelled, named} {
			w.close()
		}
	})
}

func TestWatchEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		w := p.watch("&timeoutSeconds=90&allowWatchBookmarks=true")
		began := time.Now()
		p.ask("POST", leases, held("a", "ann", 3600)).expect(201)
		version := w.expect("ADDED a ann").Object.Metadata.ResourceVersion
		p.do(&core.PutRecord{Namespace: "default", Path: "elsewhere", Value: "x"})
		mark := w.expect("BOOKMARK ")
		if took := time.Since(began); took < time.Minute || took > 61*time.Second || mark.Object.Metadata.ResourceVersion <= version || mark.Object.Kind != "Lease" {
			t.Errorf("after %v a bookmark says %+v, and the last event was %s", took, mark, version)
		}
		w.expect("BOOKMARK ")
		if h := w.next(); h != nil || time.Since(began) != 90*time.Second {
			t.Errorf("after %v there is %v", time.Since(began), h)
		}
	})
}

func TestWatchList(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		p.ask("POST", leases, held("a", "ann", 3600)).expect(201)
		p.ask("POST", leases, held("b", "bob", 3600)).expect(201)
		w := p.watch("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=")
		mark := w.expect("ADDED a ann", "ADDED b bob", "BOOKMARK ")
		if mark.Object.Metadata.Annotations[initialEnd] != "true" || mark.Object.Metadata.ResourceVersion != p.list(leases).Metadata.ResourceVersion {
			t.Errorf("the bookmark is %+v", mark)
		}
		p.ask("POST", leases, held("c", "eve", 3600)).expect(201)
		w.expect("ADDED c eve")
		w.close()
		none := p.watch("&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
		p.ask("DELETE", leases+"/c", "").expect(200)
		none.expect("DELETED c eve")
		none.close()
		p.ask("GET", leases+"?watch=1&sendInitialEvents=true", "").expect(422, "sendInitialEvents requires setting resourceVersionMatch")
		p.ask("GET", leases+"?watch=1&resourceVersionMatch=Exact", "").expect(422, "forbidden for watch unless sendInitialEvents")
		p.ask("GET", leases+"?watch=1&timeoutSeconds=x", "").expect(400)
	})
}

// A version that history has forgotten, or that never was, is answered by an event, after which a client lists again.
func TestWatchFromNowhere(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		p.ask("POST", leases, held("a", "ann", 3600)).expect(201)
		w := p.watch("&resourceVersion=99999")
		h := w.next()
		if h == nil || h.Type != "ERROR" || h.Object.Code != 410 || h.Object.Reason != "Expired" || !strings.HasPrefix(h.Object.Message, "too old resource version: 99999 (") {
			t.Errorf("got %+v", h)
		}
		if w.next() != nil {
			t.Error("the watch goes on")
		}
	})
}

// Leases that expire together have one version. A reader that is cut off among them misses none.
func TestWatchResumesWithinARevision(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		const n = 20
		for i := range n {
			p.ask("POST", leases, held(fmt.Sprintf("l%02d", i), "ann", 60)).expect(201)
		}
		version := p.list(leases).Metadata.ResourceVersion
		time.Sleep(2 * time.Minute)
		seen := map[string]int{}
		for turn := range 2 {
			w := p.watch("&resourceVersion=" + version)
			for range n {
				h := w.next()
				seen[h.Object.Metadata.Name]++
				version = h.Object.Metadata.ResourceVersion
				if turn == 0 && len(seen) == 7 {
					break // the connection is lost
				}
			}
			w.close()
		}
		if len(seen) != n {
			t.Errorf("only %d were seen: %v", len(seen), seen)
		}
	})
}

// A single event is not repeated to who has seen it.
func TestWatchResumesAfterARevision(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		made := p.ask("POST", leases, held("a", "ann", 3600)).expect(201).lease()
		w := p.watch("&resourceVersion=" + made.Meta.ResourceVersion)
		p.ask("POST", leases, held("b", "bob", 3600)).expect(201)
		w.expect("ADDED b bob")
		w.close()
	})
}

func TestWatchInProtobufAndTables(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		p.ask("POST", leases, held("a", "ann", 3600)).expect(201)
		get := func(accept string) io.ReadCloser {
			r, _ := http.NewRequest("GET", "http://server"+leases+"?watch=true", nil)
			r.Header.Set("Accept", accept)
			answer, err := p.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			return answer.Body
		}
		body := get(object.Protobuf)
		var head [4]byte
		if _, err := io.ReadFull(body, head[:]); err != nil {
			t.Fatal(err)
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(body, frame); err != nil || !strings.Contains(string(frame), "ADDED") || !strings.Contains(string(frame), "k8s\x00") {
			t.Errorf("the frame is %q, %v", frame, err)
		}
		body.Close()
		body = get("application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
		line, err := bufio.NewReader(body).ReadString('\n')
		if err != nil || !strings.Contains(line, `{"type":"ADDED","object":{"kind":"Table"`) || !strings.Contains(line, `"cells":["a","ann","0s"]`) {
			t.Errorf("the table is %s, %v", line, err)
		}
		body.Close()
	})
}

// A reader that takes nothing is cut off, and goes on where it was.
func TestSlowWatcher(t *testing.T) {
	oneByOne(t, func(t *testing.T, p *port) {
		w := p.watch("&resourceVersion=" + p.ask("POST", leases, held("a", "ann", 3600)).expect(201).lease().Meta.ResourceVersion)
		for i := range 50 {
			p.ask("POST", leases, held(fmt.Sprintf("l%02d", i), "ann", 3600)).expect(201)
		}
		time.Sleep(time.Minute)
		var last *happened
		seen := map[string]bool{}
		for h := w.next(); h != nil; h = w.next() {
			last = h
			seen[h.Object.Metadata.Name] = true
		}
		if len(seen) == 50 {
			t.Fatal("the reader was not cut off")
		}
		version := "1"
		if last != nil {
			version = last.Object.Metadata.ResourceVersion
		}
		w = p.watch("&resourceVersion=" + version)
		for len(seen) < 50 {
			name := w.next().Object.Metadata.Name
			if seen[name] {
				t.Fatalf("%s came twice", name)
			}
			seen[name] = true
		}
		w.close()
	})
}

// A server that drains ends its watches, at once and as a whole.
func TestDrainingEndsWatches(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		w, began := p.watch(""), time.Now()
		p.stop()
		if rest, err := io.ReadAll(w.body); len(rest) > 0 || err != nil {
			t.Errorf("got %q, %v", rest, err)
		}
		if err := <-p.ended; err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v the port ended with %v", time.Since(began), err)
		}
		p.ended <- nil
	})
}

// count expects so many connections and watches.
func (p *port) count(when string, connections, watches int) {
	p.t.Helper()
	synctest.Wait()
	is := int(testutil.ToFloat64(p.backend.Metrics().Watches))
	if p.gates.Open() != connections || is != watches {
		p.t.Errorf("%s there are %d connections with %d watches, want %d with %d", when, p.gates.Open(), is, connections, watches)
	}
}

// When a watch ends by itself, its client goes on with the same connection.
func TestWatchLeavesItsConnection(t *testing.T) {
	oneByOne(t, func(t *testing.T, p *port) {
		for range 3 {
			w := p.watch("&timeoutSeconds=90")
			p.count("while it lasts", 1, 1)
			if rest, err := io.ReadAll(w.body); len(rest) > 0 || err != nil {
				t.Errorf("got %q, %v", rest, err)
			}
			w.close()
			p.count("at its end", 1, 0)
		}
		w := p.watch("")
		w.close()
		p.count("when the client has left", 0, 0)
	})
}

// A body means nothing to a watch. The watch does not begin before all of it has come, and must not outlast its client.
func TestWatchWithBody(t *testing.T) {
	for name, c := range map[string]struct{ length, body, want string }{
		"that comes":       {"1", "b", "200 OK"},
		"that is missing":  {"1", "", "400 Bad Request"},
		"that is too long": {"300000", strings.Repeat("b", 300000), "413 Request Entity Too Large"},
	} {
		t.Run(name, func(t *testing.T) {
			oneByOne(t, func(t *testing.T, p *port) {
				conn, err := p.pipe.Dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				go fmt.Fprintf(conn, "GET %s?watch=true HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\n%s", leases, c.length, c.body)
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil || answer.Status != c.want {
					t.Errorf("the answer is %v, %v, want %s", answer, err, c.want)
				}
				_ = conn.Close()
				p.count("when the client has left", 0, 0)
			})
		})
	}
}

// allow changes who may do what.
func (p *port) allow(change *core.ChangeAccess) {
	p.t.Helper()
	if _, err := p.engine.Do(engine.WithAsker(p.t.Context(), &access.System), change); err != nil {
		p.t.Fatal(err)
	}
}

// A watch ends with the credential that it began with: one that is revoked, and one that expires.
func TestWatchEndsWithItsCredential(t *testing.T) {
	bubble(t, func(t *testing.T, p *port) {
		_, ann := p.govern()
		revoke := func() { p.allow(&core.ChangeAccess{Remove: access.Keys{Tokens: []string{"t2"}}}) }
		for _, end := range []func(){revoke, func() {}} {
			p.header = http.Header{"Authorization": {ann}}
			w := p.watch("&timeoutSeconds=7200")
			p.count("while it lasts", 1, 1)
			end()
			if h := w.next(); h == nil || h.Type != "ERROR" || h.Object.Code != 401 {
				t.Errorf("it ends with %+v", h)
			}
			if h := w.next(); h != nil {
				t.Errorf("after its end there is %+v", h)
			}
			w.close()
			p.count("after it", 1, 0)
			secret, hash := credential.NewToken()
			ann = "Bearer " + secret
			p.allow(&core.ChangeAccess{Put: access.Items{Tokens: []*access.Token{
				{ID: "t2", Hash: hash, Principal: "ann", ExpiresWall: time.Now().Add(30 * time.Minute).UnixNano()}}}})
		}
	})
}
