package azure

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core/access"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A request target that is no path is refused, and does not end the connection.
func TestTargetsThatAreNoPaths(t *testing.T) {
	b := newBench(t)
	for _, uri := range []string{"*", "example.org:443", ""} {
		r := httptest.NewRequest("GET", "https://127.0.0.1/", nil)
		r.RequestURI = uri
		b.send(r).expect(400, "InvalidUri")
	}
}

// A keeper counts the values that are open, and can lose them all.
type keeper struct {
	*memory.Engine
	open atomic.Int64
	lost bool
	meet func(core.Command) // hears of each command before it is done
}

func (k *keeper) Do(ctx context.Context, c core.Command) (core.Answer, error) {
	if k.meet != nil {
		k.meet(c)
	}
	return k.Engine.Do(ctx, c)
}

func (k *keeper) OpenValue(ctx context.Context, large leasehold.Large) (io.ReadSeekCloser, error) {
	if k.lost {
		return nil, engine.NoValue(large)
	}
	r, err := k.Engine.OpenValue(ctx, large)
	if err == nil {
		k.open.Add(1)
		r = &counted{r, k}
	}
	return r, err
}

type counted struct {
	io.ReadSeekCloser
	k *keeper
}

func (c *counted) Close() error {
	c.k.open.Add(-1)
	return c.ReadSeekCloser.Close()
}

// 404 means to Terraform that there is no state, and it would begin anew.
func TestBytesThatCanNotBeHadAreNotMissing(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", strings.Repeat("x", leasehold.MaxValue+1))
	b.blob("box/y", "small")
	b.door.backend.Open(&keeper{Engine: b.engine, lost: true})
	b.ask("GET", "/box/x", "").expect(503, "ServerBusy")
	b.door.backend.Open(b.engine)
	if _, err := b.engine.Do(t.Context(), &core.DeleteRecord{Namespace: "default", Path: azureblob.RootBytes + testAccount + "/box/y"}); err != nil {
		t.Fatal(err)
	}
	b.ask("GET", "/box/y", "").expect(409, "OperationNotAllowed")
	b.ask("PUT", "/box/y?comp=snapshot", "").expect(409, "OperationNotAllowed")
	b.ask("PUT", "/box/z", "", "x-ms-copy-source", "https://127.0.0.1/"+testAccount+"/box/y").expect(409, "OperationNotAllowed")
	b.ask("HEAD", "/box/y", "").expect(200)
	b.blob("box/y", "again")
	b.ask("GET", "/box/y", "").expect(200)
}

// A block list that is refused in its midst leaves nothing open.
func TestBlockListLeavesNothingOpen(t *testing.T) {
	b := newBench(t)
	b.container("box")
	k := &keeper{Engine: b.engine}
	b.door.backend.Open(k)
	b.ask("PUT", "/box/x?comp=block&blockid=QQ==", strings.Repeat("x", 3*leasehold.MaxValue)).expect(201)
	for i := range b.door.config.MaxUploads {
		b.door.uploads.Take(fmt.Sprint(i), 1) // by as many clients
	}
	b.ask("PUT", "/box/x?comp=blocklist", "<BlockList><Latest>QQ==</Latest></BlockList>").expect(503, "ServerBusy")
	if n := k.open.Load(); n != 0 {
		t.Errorf("%d values are open", n)
	}
}

// What says nothing is no block list: it would make the blob empty.
func TestEmptyBlockListBody(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", "1")
	for _, bad := range []string{"", " ", "<?xml version=\"1.0\"?>", "<BlockList>"} {
		b.ask("PUT", "/box/x?comp=blocklist", bad).expect(400, "InvalidXmlDocument")
	}
	b.ask("PUT", "/box/x?comp=blocklist", "<BlockList><Latest>"+strings.Repeat("QQ==<!---->", 10000)+"</Latest></BlockList>").expect(400, "InvalidBlockId")
	b.ask("PUT", "/box/x?comp=blocklist", "<BlockList/>").expect(201)
}

// Who may only create may not write over what is there.
func TestSASToCreateDoesNotReplace(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/old", "1")
	put := func(blob, permissions string) reply {
		q := url.Values{"sv": {"2021-12-02"}, "sr": {"b"}, "sp": {permissions}, "se": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
		at := azureblob.Place{Account: testAccount, Container: "box", Blob: blob}
		return b.send(bare("PUT", "/leasehold/box/"+blob+"?"+b.signedURL(at, q), "", "x-ms-blob-type", "BlockBlob"))
	}
	put("old", "c").expect(403, "AuthorizationPermissionMismatch")
	put("new", "c").expect(201)
	put("new", "c").expect(403, "AuthorizationPermissionMismatch")
	put("new", "cw").expect(201)
}

// A snapshot that is taken while its blob is being deleted is not deleted unasked.
func TestSnapshotWhileDeleting(t *testing.T) {
	b := newBench(t)
	b.container("box")
	b.blob("box/x", "1")
	k := &keeper{Engine: b.engine}
	var once sync.Once
	k.meet = func(core.Command) {
		once.Do(func() {
			k.meet = nil
			b.ask("PUT", "/box/x?comp=snapshot", "").expect(201)
		})
	}
	b.door.backend.Open(k)
	b.ask("DELETE", "/box/x", "").expect(409, "SnapshotsPresent")
	b.ask("GET", "/box/x", "").expect(200)
}

// A lease that expired is released once, also if nobody can tell whether the first try did it.
func TestReleaseOfAnExpiredLeaseIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.container("box")
		b.blob("box/x", "1")
		b.lease("/box/x", "acquire", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA).expect(201)
		time.Sleep(16 * time.Second)
		n := 0
		b.door.backend.Open(&forgetful{Engine: b.engine, next: func() (bool, bool) { n++; return true, n > 1 }})
		b.lease("/box/x", "release", "x-ms-lease-id", idA).expect(200)
		b.lease("/box/x", "release", "x-ms-lease-id", idA).expect(409, "LeaseIdMismatchWithLeaseOperation")
	})
}

// A hall is a listener whose connections are pipes, which live in virtual time.
type hall struct {
	come chan net.Conn
	shut chan struct{}
	once sync.Once
}

func (h *hall) Accept() (net.Conn, error) {
	select {
	case c := <-h.come:
		return c, nil
	case <-h.shut:
		return nil, net.ErrClosed
	}
}

func (h *hall) Close() error {
	h.once.Do(func() { close(h.shut) })
	return nil
}

func (h *hall) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// inVirtualTime runs a test with one connection to a door.
func inVirtualTime(t *testing.T, run func(t *testing.T, b *bench, c net.Conn)) {
	certificates := testCertificates(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h := &hall{come: make(chan net.Conn), shut: make(chan struct{})}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.port(certificates).Serve(ctx, h) }()
		ours, theirs := net.Pipe()
		h.come <- theirs
		c := tls.Client(ours, &tls.Config{InsecureSkipVerify: true})
		if err := c.Handshake(); err != nil {
			t.Fatal(err)
		}
		run(t, b, c)
		_ = ours.Close()
		stop()
		if err := <-done; err != nil && err != http.ErrServerClosed {
			t.Error(err)
		}
	})
}

// Whoever proved who it is gets to see why a body was refused, however slowly it came, and
// not a connection that breaks.
func TestSlowBodyIsToldWhyItIsRefused(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, b *bench, c net.Conn) {
		b.container("box")
		b.blob("box/x", "1")
		b.lease("/box/x", "acquire", "x-ms-lease-duration", "-1").expect(201)
		const pieces, piece = 20, 10000
		r := httptest.NewRequest("PUT", "https://127.0.0.1/leasehold/box/x", nil)
		r.Header.Set("X-Ms-Blob-Type", "BlockBlob")
		r.ContentLength = pieces * piece
		b.sign(r)
		told := make(chan string, 1)
		go func() {
			answer, err := http.ReadResponse(bufio.NewReader(c), r)
			if err != nil {
				told <- err.Error()
				return
			}
			told <- answer.Status
			_, _ = io.Copy(io.Discard, answer.Body)
		}()
		fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n", r.RequestURI, r.ContentLength)
		_ = r.Header.Write(c)
		_, err := io.WriteString(c, "\r\n")
		for range pieces {
			if err == nil {
				time.Sleep(10 * time.Second)
				_, err = io.WriteString(c, strings.Repeat("x", piece))
			}
		}
		if got := <-told; err != nil || !strings.HasPrefix(got, "412 ") {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// Whoever sends nothing more, sends too slowly, or takes nothing of the answer, is let go.
func TestStalledClientsAreLetGo(t *testing.T) {
	for name, stall := range map[string]func(t *testing.T, b *bench, c net.Conn){
		"a refused body does not come": func(t *testing.T, b *bench, c net.Conn) {
			go io.Copy(io.Discard, c)
			_, _ = io.WriteString(c, "PUT /leasehold/box/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
		},
		"a refused body drips": func(t *testing.T, b *bench, c net.Conn) {
			go io.Copy(io.Discard, c)
			_, _ = io.WriteString(c, "PUT /leasehold/box/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
			for err := error(nil); err == nil; time.Sleep(20 * time.Second) {
				_, err = io.WriteString(c, "x")
			}
		},
		"a body that nobody reads does not come": func(t *testing.T, b *bench, c net.Conn) {
			go io.Copy(io.Discard, c)
			r := httptest.NewRequest("PUT", "https://127.0.0.1/leasehold/box?restype=container", nil)
			r.ContentLength = 10
			b.sign(r)
			_, _ = io.WriteString(c, "PUT "+r.RequestURI+" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n")
			_ = r.Header.Write(c)
			_, _ = io.WriteString(c, "\r\n")
		},
		"an answer is not taken": func(t *testing.T, b *bench, c net.Conn) {
			_, _ = io.WriteString(c, "GET /leasehold/box/x HTTP/1.1\r\nHost: x\r\n\r\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, b *bench, c net.Conn) {
				stall(t, b, c)
				time.Sleep(10 * time.Minute)
				if n := b.gates.Open(); n != 0 {
					t.Errorf("%d connections are still open", n)
				}
			})
		})
	}
}

// One client whose large bodies come slowly does not keep others from theirs.
func TestUploadsAreShared(t *testing.T) {
	b := newBench(t)
	b.container("box")
	large := strings.Repeat("x", 2*leasehold.MaxValue)
	upload := func(address string, body io.Reader) reply {
		r := httptest.NewRequest("PUT", "https://127.0.0.1/"+testAccount+"/box/"+address, body)
		r.ContentLength, r.RemoteAddr = int64(len(large)), address+":1"
		r.Header.Set("X-Ms-Blob-Type", "BlockBlob")
		b.sign(r)
		return b.send(r)
	}
	var slow []*io.PipeWriter
	answers := make(chan reply, b.door.config.MaxUploads)
	for range b.door.config.MaxUploads {
		body, rest := io.Pipe()
		slow = append(slow, rest)
		go func() { answers <- upload("192.0.2.1", body) }()
		_, _ = io.WriteString(rest, large[:leasehold.MaxValue+1])
		_, _ = io.WriteString(rest, "x") // which is read by who keeps it
	}
	upload("192.0.2.2", strings.NewReader(large)).expect(201)
	for _, rest := range slow {
		go func() {
			_, _ = io.WriteString(rest, large[leasehold.MaxValue+2:])
			_ = rest.Close()
		}()
	}
	refused := 0
	for range slow {
		switch got := <-answers; got.status {
		case 201:
		case 503:
			refused++
		default:
			t.Errorf("one is answered %d %s", got.status, got.body)
		}
	}
	if refused == 0 || refused > b.door.config.MaxUploads/2 {
		t.Errorf("of %d, %d are refused", len(slow), refused)
	}
	upload("192.0.2.1", strings.NewReader(large)).expect(201)
}

// Whoever has no credential does not learn by a bearer token which accounts there are.
func TestTokensDoNotTellAccounts(t *testing.T) {
	b := newBench(t)
	_, hash := credential.NewToken()
	_, err := b.engine.Do(t.Context(), &core.ChangeAccess{Put: access.Items{
		Tokens:   []*access.Token{{ID: "t1", Hash: hash, Principal: "root"}},
		Bindings: []*access.Binding{{Name: "admins", Role: "admin", Principal: "root", Namespace: "*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	wrong, _ := credential.NewToken()
	for _, token := range []string{"a.b.c", wrong} {
		var told []string
		for _, account := range []string{testAccount, "another99"} {
			got := b.send(bare("GET", "/"+account+"/box/x", "", "Authorization", "Bearer "+token))
			got.expect(401, "InvalidAuthenticationInfo")
			told = append(told, got.body[strings.Index(got.body, "<AuthenticationErrorDetail>"):])
		}
		if told[0] != told[1] {
			t.Errorf("%q is told about an account that there is, and %q about another", told[0], told[1])
		}
	}
}

// What lists have in memory counts like all answers, until they are sent.
func TestListsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		metadata := strings.Repeat("m", maxMetadata-10)
		for i := range 10 {
			b.ask("PUT", fmt.Sprintf("/box%d?restype=container", i), "", "x-ms-meta-a", metadata).expect(201)
		}
		for i := range 10 {
			b.blob(fmt.Sprint("box0/", i), "1", "x-ms-meta-a", metadata).expect(201)
			b.ask("PUT", "/box1/one", "", "x-ms-blob-type", "BlockBlob", "x-ms-meta-a", metadata).expect(201)
			b.ask("PUT", "/box1/one?comp=snapshot", "").expect(201)
			time.Sleep(time.Second) // no two have one name
		}
		targets := []string{"/?comp=list&include=metadata", "/box0?restype=container&comp=list&include=metadata",
			"/box1?restype=container&comp=list&include=metadata,snapshots"}
		for _, target := range targets {
			b.ask("GET", target, "").expect(200)
		}
		*b.door = *New(door.NewBackend(b.engine, door.Options{Answers: 1}), b.door.config)
		for _, target := range targets {
			b.ask("GET", target, "").expect(503, "ServerBusy")
			b.ask("GET", target+"&maxresults=3&prefix=none", "").expect(200)
		}
	})
}
