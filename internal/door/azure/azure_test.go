package azure

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go.uber.org/goleak"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/doortest"
	"github.com/leasehold/leasehold/internal/engine/memory"
	"github.com/leasehold/leasehold/internal/listen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testAccount = "leasehold"

// A bench is a door to an engine in memory, with one account.
type bench struct {
	testing.TB
	door   *Door
	engine *memory.Engine
	book   *azureaccount.Book
	gates  *listen.Gates
}

// port is the door's own port.
func (b *bench) port(certificates *tls.Config) *door.Host {
	return door.NewOwnHost(b.door.backend, door.HostConfig{TLS: certificates, Gates: b.gates}, b.door.Port())
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir := t.TempDir()
	book, err := azureaccount.Open(filepath.Join(dir, "accounts"), filepath.Join(dir, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Create(testAccount, time.Now()); err != nil {
		t.Fatal(err)
	}
	e := doortest.StartMemory(t)
	return &bench{t, New(door.NewBackend(e, door.Options{}), Config{Accounts: book}), e, book, &listen.Gates{}}
}

// A reply is what a door said.
type reply struct {
	*bench
	what   string
	status int
	code   string
	header http.Header
	body   string
}

// ask sends one signed request, without a network. Headers are pairs of name and value.
func (b *bench) ask(method, target, body string, headers ...string) reply {
	b.Helper()
	r := httptest.NewRequest(method, "https://127.0.0.1/"+testAccount+target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	b.sign(r)
	return b.send(r)
}

func (b *bench) sign(r *http.Request) {
	r.RequestURI = r.URL.RequestURI()
	if r.Header.Get("X-Ms-Date") == "" {
		r.Header.Set("X-Ms-Date", timeOf(time.Now().UnixNano()))
	}
	if r.Header.Get("X-Ms-Version") == "" {
		r.Header.Set("X-Ms-Version", newestVersion)
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	text := stringToSign(r, testAccount, path, r.URL.Query())
	r.Header.Set("Authorization", "SharedKey "+testAccount+":"+base64.StdEncoding.EncodeToString(sign(b.book.Keys(testAccount)[0], text)))
}

func (b *bench) send(r *http.Request) reply {
	w := httptest.NewRecorder()
	b.door.ServeHTTP(w, r)
	raw := w.Result()
	text, _ := io.ReadAll(raw.Body)
	code := ""
	//lint:ignore SA1008 the door writes it in lower case, as Azure does
	if v := w.Header()["x-ms-error-code"]; len(v) > 0 {
		code = v[0]
	}
	return reply{b, r.Method + " " + r.URL.String(), w.Code, code, raw.Header, string(text)}
}

// expect fails unless the reply has a status and, if one is given, a code.
func (r reply) expect(status int, code ...string) reply {
	r.Helper()
	want := strings.Join(code, "")
	if r.status != status || r.code != want {
		r.Fatalf("%s: got %d %s, want %d %s: %s", r.what, r.status, r.code, status, want, r.body)
	}
	return r
}

func (r reply) get(name string) string { return headerOf(r.header, name) }

// headerOf finds a header however its name is written.
func headerOf(h http.Header, name string) string {
	for key, values := range h {
		if strings.EqualFold(key, name) {
			return values[0]
		}
	}
	return ""
}

// container makes a container.
func (b *bench) container(name string) { b.ask("PUT", "/"+name+"?restype=container", "").expect(201) }

// blob makes a blob.
func (b *bench) blob(name, body string, headers ...string) reply {
	b.Helper()
	return b.ask("PUT", "/"+name, body, append([]string{"x-ms-blob-type", "BlockBlob"}, headers...)...).expect(201)
}

// lease does something to a lease.
func (b *bench) lease(target, action string, headers ...string) reply {
	b.Helper()
	sep := "?"
	if strings.Contains(target, "?") {
		sep = "&"
	}
	return b.ask("PUT", target+sep+"comp=lease", "", append([]string{"x-ms-lease-action", action}, headers...)...)
}

const (
	idA = "aaaaaaaa-1111-4111-8111-111111111111"
	idB = "bbbbbbbb-2222-4222-8222-222222222222"
	idC = "cccccccc-3333-4333-8333-333333333333"
)

func TestBlobLife(t *testing.T) {
	b := newBench(t)
	b.ask("GET", "/tfstate/demo.tfstate", "").expect(404, "ContainerNotFound")
	b.container("tfstate")
	b.ask("PUT", "/tfstate?restype=container", "").expect(409, "ContainerAlreadyExists")
	b.ask("GET", "/tfstate/demo.tfstate", "").expect(404, "BlobNotFound")
	made := b.blob("tfstate/demo.tfstate", "hello", "Content-Type", "application/json", "x-ms-meta-One", "1")
	got := b.ask("GET", "/tfstate/demo.tfstate", "").expect(200)
	if got.body != "hello" || got.get("ETag") != made.get("ETag") || got.get("Content-Type") != "application/json" || got.get("x-ms-meta-one") != "1" {
		t.Errorf("got %q %v", got.body, got.header)
	}
	head := b.ask("HEAD", "/tfstate/demo.tfstate", "").expect(200)
	if head.body != "" || head.get("Content-Length") != "5" || head.get("x-ms-lease-state") != "available" || head.get("x-ms-lease-status") != "unlocked" {
		t.Errorf("head: %v", head.header)
	}
	part := b.ask("GET", "/tfstate/demo.tfstate", "", "x-ms-range", "bytes=1-3", "x-ms-range-get-content-md5", "true").expect(206)
	if part.body != "ell" || part.get("Content-Range") != "bytes 1-3/5" || part.get("Content-MD5") == "" {
		t.Errorf("part: %q %v", part.body, part.header)
	}
	b.ask("GET", "/tfstate/demo.tfstate", "", "Range", "bytes=9-").expect(416, "InvalidRange")
	b.ask("PUT", "/tfstate/demo.tfstate?comp=metadata", "", "x-ms-meta-two", "2").expect(200)
	if got := b.ask("GET", "/tfstate/demo.tfstate?comp=metadata", "").expect(200); got.get("x-ms-meta-two") != "2" || got.get("x-ms-meta-one") != "" {
		t.Errorf("metadata: %v", got.header)
	}
	b.ask("PUT", "/tfstate/demo.tfstate?comp=properties", "", "x-ms-blob-content-type", "text/plain").expect(200)
	b.ask("DELETE", "/tfstate/demo.tfstate", "").expect(202)
	b.ask("HEAD", "/tfstate/demo.tfstate", "").expect(404, "BlobNotFound")
	b.ask("DELETE", "/tfstate?restype=container", "").expect(202)
	b.ask("GET", "/tfstate?restype=container", "").expect(404, "ContainerNotFound")
}

func TestLargeBlob(t *testing.T) {
	b := newBench(t)
	b.container("big")
	body := strings.Repeat("0123456789abcdef", 1<<16)
	b.blob("big/one", body)
	if got := b.ask("GET", "/big/one", "").expect(200); got.body != body {
		t.Error("the bytes are others")
	}
	if got := b.ask("GET", "/big/one", "", "Range", "bytes=1000000-1000015").expect(206); got.body != body[1000000:1000016] {
		t.Errorf("got %q", got.body)
	}
	b.ask("PUT", "/big/two", "", "x-ms-copy-source", "https://127.0.0.1/"+testAccount+"/big/one").expect(202)
	snap := b.ask("PUT", "/big/one?comp=snapshot", "").expect(201).get("x-ms-snapshot")
	b.blob("big/one", "small")
	for _, target := range []string{"/big/two", "/big/one?snapshot=" + url.QueryEscape(snap)} {
		if got := b.ask("GET", target, "").expect(200); got.body != body {
			t.Errorf("%s: the bytes are others", target)
		}
	}
	b.ask("DELETE", "/big/one", "").expect(409, "SnapshotsPresent")
	b.ask("DELETE", "/big/one", "", "x-ms-delete-snapshots", "include").expect(202)
	b.ask("GET", "/big/one?snapshot="+url.QueryEscape(snap), "").expect(404, "BlobNotFound")
}

func TestConditions(t *testing.T) {
	b := newBench(t)
	b.container("con")
	b.ask("PUT", "/con/x", "1", "x-ms-blob-type", "BlockBlob", "If-Match", `"0x1"`).expect(412, "ConditionNotMet")
	tag := b.blob("con/x", "1", "If-None-Match", "*").get("ETag")
	b.ask("PUT", "/con/x", "2", "x-ms-blob-type", "BlockBlob", "If-None-Match", "*").expect(409, "BlobAlreadyExists")
	b.ask("PUT", "/con/x", "2", "x-ms-blob-type", "BlockBlob", "If-Match", `"0x1"`).expect(412, "ConditionNotMet")
	b.ask("GET", "/con/x", "", "If-None-Match", tag).expect(304, "ConditionNotMet")
	b.ask("GET", "/con/x", "", "If-Match", tag).expect(200)
	b.ask("GET", "/con/x", "", "If-Modified-Since", timeOf(time.Now().Add(time.Hour).UnixNano())).expect(304, "ConditionNotMet")
	b.ask("GET", "/con/x", "", "If-Unmodified-Since", timeOf(time.Now().Add(-time.Hour).UnixNano())).expect(412, "ConditionNotMet")
	b.ask("GET", "/con/x", "", "If-Modified-Since", "yesterday").expect(400, "InvalidHeaderValue")
	b.blob("con/x", "2", "If-Match", tag)
	b.lease("/con/x", "acquire", "x-ms-lease-duration", "15", "If-Match", tag).expect(412, "ConditionNotMet")
	b.lease("/con/x", "acquire", "x-ms-lease-duration", "15").expect(201)
	// The lease comes before the condition.
	b.ask("PUT", "/con/x", "2", "x-ms-blob-type", "BlockBlob", "If-None-Match", "*").expect(412, "LeaseIdMissing")
	b.ask("PUT", "/con/x", "1", "x-ms-blob-type", "BlockBlob", "Content-MD5", "AAAA").expect(412, "LeaseIdMissing")
	b.ask("PUT", "/con/y", "1", "x-ms-blob-type", "BlockBlob", "Content-MD5", "AAAA").expect(400, "InvalidMd5")
	b.ask("PUT", "/con/y", "1", "x-ms-blob-type", "BlockBlob", "Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg==").expect(400, "Md5Mismatch")
	b.ask("GET", "/con/y", "").expect(404, "BlobNotFound")
}

// A snapshot goes only under the conditions of who deletes it.
func TestConditionsOfASnapshot(t *testing.T) {
	b := newBench(t)
	b.container("con")
	b.blob("con/x", "1")
	taken := b.ask("PUT", "/con/x?comp=snapshot", "").expect(201)
	at := "/con/x?snapshot=" + taken.get("x-ms-snapshot")
	b.ask("DELETE", at, "", "If-Match", `"0x1"`).expect(412, "ConditionNotMet")
	b.ask("DELETE", at, "", "If-Modified-Since", "yesterday").expect(400, "InvalidHeaderValue")
	b.ask("DELETE", at, "", "If-Match", taken.get("ETag")).expect(202)
}

func TestBlocks(t *testing.T) {
	b := newBench(t)
	b.container("blk")
	id := func(n int) string { return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "block-%03d", n)) }
	put := func(n int, body string) {
		t.Helper()
		b.ask("PUT", "/blk/x%3Fy?comp=block&blockid="+url.QueryEscape(id(n)), body).expect(201)
	}
	put(1, "one")
	put(2, strings.Repeat("2", 100000))
	b.ask("GET", "/blk/x%3Fy", "").expect(404, "BlobNotFound")
	b.ask("PUT", "/blk/x%3Fy?comp=block&blockid=QQ==", "?").expect(400, "InvalidBlobOrBlock")
	b.ask("PUT", "/blk/x%3Fy?comp=block&blockid=*", "?").expect(400, "InvalidBlockId")
	list := func(lines ...string) string {
		return "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>" + strings.Join(lines, "") + "</BlockList>"
	}
	latest := func(n int) string { return "<Latest>" + id(n) + "</Latest>" }
	b.ask("PUT", "/blk/x%3Fy?comp=blocklist", list(latest(9))).expect(400, "InvalidBlockList")
	b.ask("PUT", "/blk/x%3Fy?comp=blocklist", list(latest(1), latest(2))).expect(201)
	if got := b.ask("GET", "/blk/x%3Fy", "").expect(200); got.body != "one"+strings.Repeat("2", 100000) {
		t.Errorf("got %d bytes", len(got.body))
	}
	put(3, "three")
	b.ask("PUT", "/blk/x%3Fy?comp=blocklist", list("<Uncommitted>"+id(3)+"</Uncommitted>", "<Committed>"+id(1)+"</Committed>", latest(3))).expect(201)
	if got := b.ask("GET", "/blk/x%3Fy", "").expect(200); got.body != "threeonethree" {
		t.Errorf("got %q", got.body)
	}
	put(4, "four")
	shown := b.ask("GET", "/blk/x%3Fy?comp=blocklist&blocklisttype=all", "").expect(200).body
	if strings.Count(shown, "<Block>") != 4 || !strings.Contains(shown, "<UncommittedBlocks><Block><Name>"+id(4)) {
		t.Errorf("got %s", shown)
	}
	for _, bad := range []string{"", "<", "<BlockList><Latest>", "<Other/>", "<BlockList><Odd>x</Odd></BlockList>"} {
		r := b.ask("PUT", "/blk/x%3Fy?comp=blocklist", bad)
		if bad != "" && (r.status != 400 || r.code == "") {
			t.Errorf("%q: %d %s", bad, r.status, r.code)
		}
	}
}

func TestLists(t *testing.T) {
	b := newBench(t)
	b.container("lst")
	b.container("lst-2")
	b.container("lst2")
	for _, name := range []string{"a/1", "a/2", "b", "c/x/y", "c/z", "d&e"} {
		b.blob("lst/"+url.PathEscape(name), name)
	}
	all := b.ask("GET", "/lst?restype=container&comp=list", "").expect(200)
	if n := strings.Count(all.body, "<Blob>"); n != 6 || all.get("Content-Type") != "application/xml" || !strings.Contains(all.body, "<Name>d&amp;e</Name>") {
		t.Errorf("%d blobs, %v: %s", n, all.header, all.body)
	}
	grouped := b.ask("GET", "/lst?restype=container&comp=list&delimiter=%2F", "").expect(200).body
	if strings.Count(grouped, "<BlobPrefix>") != 2 || strings.Count(grouped, "<Blob>") != 2 {
		t.Errorf("grouped: %s", grouped)
	}
	inside := b.ask("GET", "/lst?restype=container&comp=list&delimiter=%2F&prefix=c%2F", "").expect(200).body
	if !strings.Contains(inside, "<BlobPrefix><Name>c/x/</Name>") || !strings.Contains(inside, "<Name>c/z</Name>") {
		t.Errorf("inside: %s", inside)
	}
	var names []string
	marker := ""
	for range 10 {
		page := b.ask("GET", "/lst?restype=container&comp=list&maxresults=2&marker="+marker, "").expect(200).body
		for _, part := range strings.Split(page, "<Blob><Name>")[1:] {
			name, _, _ := strings.Cut(part, "<")
			names = append(names, name)
		}
		_, rest, _ := strings.Cut(page, "<NextMarker>")
		if marker, _, _ = strings.Cut(rest, "<"); marker == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "a/1 a/2 b c/x/y c/z d&amp;e" {
		t.Errorf("by pages: %s", got)
	}
	containers := b.ask("GET", "?comp=list", "").expect(200).body
	if strings.Count(containers, "<Container>") != 3 {
		t.Errorf("containers: %s", containers)
	}
	if page := b.ask("GET", "?comp=list&maxresults=1&prefix=lst", "").expect(200).body; strings.Count(page, "<Container>") != 1 || strings.Contains(page, "<NextMarker></NextMarker>") {
		t.Errorf("containers: %s", page)
	}
	b.ask("GET", "/lst?restype=container&comp=list&maxresults=0", "").expect(400, "OutOfRangeQueryParameterValue")
	b.ask("GET", "/lst?restype=container&comp=list&include=uncommittedblobs", "").expect(400, "InvalidQueryParameterValue")
	b.ask("GET", "/none?restype=container&comp=list", "").expect(404, "ContainerNotFound")
}

// azurerm looks at the first page alone.
func TestFiveThousandInOnePage(t *testing.T) {
	b := newBench(t)
	b.container("many")
	for i := range 5000 {
		b.blob(fmt.Sprintf("many/demo.tfstateenv:%05d", i), "")
	}
	page := b.ask("GET", "/many?restype=container&comp=list&prefix=demo.tfstateenv%3A", "").expect(200).body
	if n := strings.Count(page, "<Blob>"); n != 5000 || !strings.Contains(page, "<NextMarker></NextMarker>") {
		t.Errorf("%d in the first page", n)
	}
	b.ask("DELETE", "/many?restype=container", "").expect(202)
	b.container("many")
	if page := b.ask("GET", "/many?restype=container&comp=list", "").expect(200).body; strings.Contains(page, "<Blob>") {
		t.Errorf("a new container has old blobs: %.300s", page)
	}
}

func TestUnsupported(t *testing.T) {
	b := newBench(t)
	b.container("uns")
	b.blob("uns/x", "1")
	b.ask("PUT", "/uns/y", "", "x-ms-blob-type", "PageBlob").expect(400, "BlobTypeNotSupported")
	b.ask("PUT", "/uns/y", "", "x-ms-blob-type", "AppendBlob").expect(400, "BlobTypeNotSupported")
	b.ask("PUT", "/uns/y", "", "x-ms-blob-type", "Odd").expect(400, "InvalidHeaderValue")
	b.ask("PUT", "/uns/y", "").expect(400, "MissingRequiredHeader")
	b.ask("PUT", "/uns/x?comp=tier", "", "x-ms-access-tier", "Cool").expect(400, "UnsupportedQueryParameter")
	b.ask("PUT", "/uns/x?comp=tags", "").expect(400, "UnsupportedQueryParameter")
	b.ask("PUT", "/uns/x?comp=page", "").expect(400, "UnsupportedQueryParameter")
	b.ask("PUT", "/uns/x?comp=appendblock", "").expect(400, "UnsupportedQueryParameter")
	b.ask("PUT", "/uns/y", "", "x-ms-blob-type", "BlockBlob", "x-ms-tags", "a=b").expect(400, "UnsupportedHeader")
	b.ask("PUT", "/uns/y", "", "x-ms-blob-type", "BlockBlob", "x-ms-encryption-scope", "a").expect(400, "UnsupportedHeader")
	b.ask("PUT", "/uns/y", "", "x-ms-blob-type", "BlockBlob", "x-ms-access-tier", "Archive").expect(400, "UnsupportedHeader")
	b.ask("PUT", "/uns/x?comp=copy&copyid=1", "").expect(409, "NoPendingCopyOperation")
	b.ask("POST", "/uns/x", "").expect(405, "UnsupportedHttpVerb")
	b.ask("PUT", "/UPPER?restype=container", "").expect(400, "InvalidResourceName")
	b.ask("PUT", "/uns/"+strings.Repeat("n", 900), "", "x-ms-blob-type", "BlockBlob").expect(400, "InvalidResourceName")
	b.ask("GET", "/uns/x", "", "x-ms-version", "today").expect(400, "InvalidHeaderValue")
}

// The record of a container that was made without a client of Azure is one of this door.
func TestContainerRecordIsReadable(t *testing.T) {
	_, value, err := azureaccount.NewContainer("prod", "tfstate", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var p properties
	strict := json.NewDecoder(strings.NewReader(value))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&p); err != nil || p.Created == 0 || p.Modified == 0 || p.ETag == "" {
		t.Errorf("the record %s reads as %+v, %v", value, p, err)
	}
}
