package native

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// large is a value that no log entry could hold.
var large = strings.Repeat("0123456789", 200000)

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestLargeValues(t *testing.T) {
	door := newDoor(t, Config{})
	const at, raw = "/v1/records/state/a", "application/octet-stream"
	a := ask(t, door, "PUT", at, large, "Content-Digest", digestOf(large)).expect(200).without("value")
	r := read[v1.Record](a)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(large))); r.Large == nil || r.Large.SHA256 != want || r.Large.Size != int64(len(large)) {
		t.Fatalf("the answer is %+v", r)
	}
	if r := read[v1.Record](ask(t, door, "GET", at, "").expect(200)); r.Large == nil || r.Value != nil {
		t.Errorf("as JSON it is %+v", r)
	}
	ask(t, door, "GET", "/v1/records?keys=true", "").expect(200, `"large":{`)
	a = ask(t, door, "GET", at, "", "Accept", raw).expect(200)
	if a.body != large || a.header.Get("ETag") != `"1"` || a.header.Get("Repr-Digest") != digestOf(large) || a.header.Get("Content-Length") != fmt.Sprint(len(large)) {
		t.Errorf("%d bytes with %v", len(a.body), a.header)
	}
	a = ask(t, door, "GET", at, "", "Accept", raw, "Range", "bytes=7-16").expect(206)
	if a.body != "7890123456" || a.header.Get("Content-Range") != fmt.Sprintf("bytes 7-16/%d", len(large)) {
		t.Errorf("the part is %q, %v", a.body, a.header)
	}
	ask(t, door, "GET", at, "", "Accept", raw, "Range", "bytes=9999999-").expect(416, "the value has 2000000 bytes", `"code":"invalid"`)
	ask(t, door, "GET", at, "", "Accept", raw, "If-Match", `"9"`).expect(412, `"code":"refused"`)
	ask(t, door, "GET", at, "", "Accept", raw, "Range", "bytes=0-1", "If-Range", `"9"`).expect(200)

	// Conditions and fences hold as for others.
	ask(t, door, "PUT", at, large, "If-None-Match", "*").expect(412)
	ask(t, door, "PUT", at, large, "If-Match", `"1"`).expect(200, `"version":2`)
	ask(t, door, "PUT", at, large, v1.LeaseHeader, "nobody").expect(410)
	ask(t, door, "POST", "/v1/txn", `{"if":[{"record":"state/a","field":"value","value":"eA=="}]}`).expect(422, "compare its revision, which is 2")

	// What is not what it should be leaves the record as it was.
	ask(t, door, "PUT", at, large, "Content-Digest", digestOf("other")).expect(400, "Content-Digest")
	ask(t, door, "PUT", at, "small", "Content-Digest", digestOf("other")).expect(400, "Content-Digest")
	ask(t, door, "PUT", at, "small", "Content-Digest", "sha-256=:x:").expect(400, "Content-Digest")
	ask(t, door, "PUT", at, "small", "Content-Digest", "md5=:x:, "+digestOf("small")).expect(200, `"version":3`)
}

func TestVersions(t *testing.T) {
	door := newDoor(t, Config{})
	const at, list = "/v1/records/state/a", "/v1/versions/state/a"
	ask(t, door, "GET", list, "").expect(404, "no former versions of it")
	ask(t, door, "PUT", at, "one").expect(200)
	if p := read[v1.VersionPage](ask(t, door, "GET", list, "").expect(200)); len(p.Items) != 1 || !p.Items[0].Current || p.Items[0].Written != nil {
		t.Errorf("of one that keeps nothing: %+v", p)
	}
	lease := read[v1.Lease](ask(t, door, "POST", "/v1/acquire", `{"resource":"state/a","holder":"ann"}`).expect(200))
	ask(t, door, "PUT", at+"?keep=2", large, v1.LeaseHeader, lease.ID).expect(200)
	ask(t, door, "PUT", at, "three").expect(200)
	p := read[v1.VersionPage](ask(t, door, "GET", list+"?limit=2", "").expect(200))
	if len(p.Items) != 2 || p.Keep != 2 || p.Next != "3" || p.Items[0].Size != 5 || p.Items[1].SHA256 == "" || p.Items[1].Holder != "ann" || p.Items[1].Written == nil {
		t.Fatalf("the newest are %+v", p)
	}
	p = read[v1.VersionPage](ask(t, door, "GET", list+"?after="+p.Next, "").expect(200))
	if len(p.Items) != 1 || p.Items[0].Revision != 1 || p.Next != "" {
		t.Errorf("then %+v", p)
	}
	ask(t, door, "GET", at+"?version=1", "").expect(200, `"value":"b25l"`, `"mod_revision":1`)
	if a := ask(t, door, "GET", at+"?version=3", "", "Accept", "application/octet-stream").expect(200); a.body != large || a.header.Get("ETag") != `"3"` {
		t.Errorf("version 3 has %d bytes", len(a.body))
	}
	ask(t, door, "GET", at+"?version=2", "").expect(404, "no version of revision 2")

	ask(t, door, "PUT", at+"?version=3", "", "If-Match", `"4"`).expect(200, `"version":4`, `"large":{`)
	ask(t, door, "GET", at+"?version=1", "").expect(404)
	ask(t, door, "PUT", at+"?version=3", "x").expect(400, "one of them only")
	ask(t, door, "PUT", at+"?version=99", "").expect(404)
	ask(t, door, "DELETE", at, "").expect(200)
	ask(t, door, "GET", list, "").expect(200, `"deleted":true`)
	ask(t, door, "PUT", at+"?version=4&keep=none", "").expect(200, `"version":1`)
	ask(t, door, "GET", list, "").expect(200).without("deleted")

	for _, wrong := range []string{"?keep=0", "?keep=-1", "?keep=1001", "?keep=many", "?version=0", "?version=x"} {
		ask(t, door, "PUT", at+wrong, "").expect(400, `"code":"invalid"`)
	}
	ask(t, door, "GET", at+"?version=1&revision=1", "").expect(400, "give one")
	ask(t, door, "GET", list+"?after=x", "").expect(400)
}

// TestSameBytesAreNotSentAgain goes over a real connection, since there is no body.
func TestSameBytesAreNotSentAgain(t *testing.T) {
	server := httptest.NewServer(newDoor(t, Config{}))
	defer server.Close()
	at := server.URL + "/v1/records/state/a"
	put, err := http.NewRequest("PUT", at, strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	expectStatus(t, put, 200)
	get, err := http.NewRequest("GET", at, nil)
	if err != nil {
		t.Fatal(err)
	}
	get.Header.Set("Accept", "application/octet-stream")
	get.Header.Set("If-None-Match", `"1"`)
	expectStatus(t, get, 304)
	head, _ := http.NewRequest("HEAD", at, nil)
	head.Header.Set("Accept", "application/octet-stream")
	if h := expectStatus(t, head, 200); h.Get("Content-Length") != fmt.Sprint(len(large)) {
		t.Errorf("head says %v", h)
	}
}

func expectStatus(t *testing.T, r *http.Request, status int) http.Header {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != status {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("status %d, want %d: %s", response.StatusCode, status, body)
	}
	return response.Header
}

// send writes a request by hand, and returns how it is answered; and how to hang up.
func send(t *testing.T, p *doortest.Pipe, head string, body io.Reader) (*http.Response, func()) {
	t.Helper()
	conn, err := p.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, head)
		_, _ = io.Copy(conn, body)
	}()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("there is no answer: %v", err)
	}
	return response, func() {
		conn.Close()
		<-sent
	}
}

// TestBadBodies sends what no client should: each gets an answer at once or when its time
// is up, and no former versions of it.
func TestBadBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, p := newDoor(t, Config{}), doortest.NewPipe()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- door.Serve(ctx, p) }()
		const put = "PUT /v1/records/state/a HTTP/1.1\r\nHost: x\r\n"
		for name, test := range map[string]struct {
			head   string
			body   io.Reader
			status int
			says   string
		}{
			"10 GiB announced":                         {put + "Content-Length: 10737418240\r\n\r\n", strings.NewReader(""), 413, "more than 268435456 bytes"},
			"10 GiB announced, and a go-ahead awaited": {put + "Content-Length: 10737418240\r\nExpect: 100-continue\r\n\r\n", strings.NewReader(""), 413, "more than"},
			"a sender that stands still":               {put + "Content-Length: 1000000\r\n\r\n", strings.NewReader(large[:70000]), 408, "did not arrive"},
			"a chunk that is none":                     {put + "Transfer-Encoding: chunked\r\n\r\n", strings.NewReader("11170\r\n" + large[:70000] + "\r\nxyz\r\n"), 400, "cannot be read"},
		} {
			response, hangUp := send(t, p, test.head, test.body)
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.status || !strings.Contains(string(body), test.says) {
				t.Errorf("%s: %d %s", name, response.StatusCode, body)
			}
			hangUp()
		}
		// One that breaks off gets no answer; the server must only forget it.
		conn, err := p.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, put+"Content-Length: 1000000\r\n\r\n"+large[:70000])
		conn.Close()
		synctest.Wait()
		ask(t, door, "GET", "/v1/records/state/a", "").expect(404)
		if n := door.transfers.Now(); n != 0 {
			t.Errorf("%d transfers are still counted", n)
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// A slow sender may take long, as long as it goes on.
func TestASlowSenderIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door, p := newDoor(t, Config{}), doortest.NewPipe()
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- door.Serve(ctx, p) }()
		body := strings.Repeat("x", 10<<20)
		slow := &slowReader{Reader: strings.NewReader(body), pause: readTime / 40}
		response, hangUp := send(t, p, fmt.Sprintf("PUT /v1/records/state/a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(body)), slow)
		if response.StatusCode != 200 {
			answer, _ := io.ReadAll(response.Body)
			t.Errorf("%d %s", response.StatusCode, answer)
		}
		hangUp()
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// A slowReader pauses before each 32 KiB.
type slowReader struct {
	io.Reader
	pause time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	time.Sleep(r.pause)
	return r.Reader.Read(p[:min(len(p), 32<<10)])
}

// failing is an engine whose values cannot be read to their end.
type failing struct{ *memory.Engine }

func (failing) OpenValue(context.Context, leasehold.Large) (io.ReadSeekCloser, error) {
	return brokenValue{bytes.NewReader(make([]byte, len(large)))}, nil
}

type brokenValue struct{ *bytes.Reader }

func (b brokenValue) Read(p []byte) (int, error) {
	if b.Len() < len(large)/2 {
		return 0, errors.New("the value is damaged")
	}
	return b.Reader.Read(p)
}

func (brokenValue) Close() error { return nil }

// What could not be read to its end must not pass for whole.
func TestADamagedValueIsCutOff(t *testing.T) {
	e := failing{memory.Start(engine.NewGoClock())}
	defer e.Close()
	server := httptest.NewServer(open(e, Config{}))
	defer server.Close()
	at := server.URL + "/v1/records/state/a"
	put, _ := http.NewRequest("PUT", at, strings.NewReader(large))
	expectStatus(t, put, 200)
	get, _ := http.NewRequest("GET", at, nil)
	get.Header.Set("Accept", "application/octet-stream")
	response, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("%d bytes passed for %d", len(body), len(large))
	}
}

// A replaced is an engine on which somebody replaces a value just before it is opened.
type replaced struct {
	*memory.Engine
	replace func()
}

func (r *replaced) OpenValue(ctx context.Context, l leasehold.Large) (io.ReadSeekCloser, error) {
	if replace := r.replace; replace != nil {
		r.replace = nil
		replace()
		return nil, engine.NoValue(l)
	}
	return r.Engine.OpenValue(ctx, l)
}

func TestAValueIsReplacedBeforeItIsOpened(t *testing.T) {
	e := &replaced{Engine: memory.Start(engine.NewGoClock())}
	defer e.Close()
	door := open(e, Config{})
	const at, raw = "/v1/records/state/a", "application/octet-stream"
	ask(t, door, "PUT", at, large).expect(200)
	next := large + "next"
	e.replace = func() { ask(t, door, "PUT", at, next).expect(200) }
	if a := ask(t, door, "GET", at, "", "Accept", raw).expect(200); a.body != next || a.header.Get("ETag") != `"2"` {
		t.Errorf("%d bytes are read, with %v", len(a.body), a.header)
	}
	e.replace = func() { ask(t, door, "PUT", at, "small").expect(200) }
	if a := ask(t, door, "GET", at, "", "Accept", raw).expect(200); a.body != "small" {
		t.Errorf("%d bytes are read", len(a.body))
	}
	ask(t, door, "PUT", at, large).expect(200)
	e.replace = func() { ask(t, door, "DELETE", at, "").expect(200) }
	ask(t, door, "GET", at, "", "Accept", raw).expect(404, "no record state/a")
	ask(t, door, "PUT", at, large).expect(200)
	e.replace = func() {} // nobody replaced it, and it is not there
	ask(t, door, "GET", at, "", "Accept", raw).expect(404, "is no longer kept")
}

// More large values than can pass at a time are refused, and small ones go on. A client whose uploads stall cannot
// have all places: others write and read theirs.
func TestTransfersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, Config{})
		const at = "/v1/records/state/a"
		var stalled []*io.PipeWriter
		var ended sync.WaitGroup
		for i := range 256 {
			body, rest := io.Pipe()
			stalled = append(stalled, rest)
			r := httptest.NewRequest("PUT", fmt.Sprint("/v1/records/stalled/", i), body)
			ended.Go(func() { door.ServeHTTP(httptest.NewRecorder(), r) })
			_, _ = io.WriteString(rest, large[:leasehold.MaxValue+1])
			synctest.Wait() // it counts, or is refused
		}
		ask(t, door, "PUT", at, large).expect(429, "as many large values")
		ask(t, door, "PUT", at, "small").expect(200)
		other := func(method, body string) int {
			r := httptest.NewRequest(method, at, strings.NewReader(body))
			r.RemoteAddr = "192.0.2.77:1"
			r.Header.Set("Accept", "application/octet-stream")
			w := httptest.NewRecorder()
			door.ServeHTTP(w, r)
			return w.Code
		}
		if put, got := other("PUT", large), other("GET", ""); put != 200 || got != 200 {
			t.Errorf("another client is answered %d and %d", put, got)
		}
		ask(t, door, "GET", at, "", "Accept", "application/octet-stream").expect(429)
		for _, rest := range stalled {
			_ = rest.CloseWithError(io.ErrUnexpectedEOF)
		}
		ended.Wait()
		ask(t, door, "PUT", at, large).expect(200)
	})
}
