package azure

import (
	"encoding/base64"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the documents in testdata that the tests compare with; read the difference")

// What differs from run to run is written as a word, so that the rest can be compared
// byte for byte.
var changing = []struct {
	form *regexp.Regexp
	word string
}{
	{regexp.MustCompile(`\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT`), "DATE"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z`), "TIME"},
	{regexp.MustCompile(`0x[0-9A-F]{16}`), "0xTAG"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "GUID"},
}

// Clients of Azure parse these documents in ways of their own, so their bytes stay as
// they are: declaration, order of elements, empty elements, escaping.
func TestDocuments(t *testing.T) {
	b := newBench(t)
	id := base64.StdEncoding.EncodeToString([]byte("block-001"))
	b.container("one")
	b.ask("PUT", "/two?restype=container", "", "x-ms-meta-b", "<2>", "x-ms-meta-a", "1 & \"1\"").expect(201)
	b.lease("/two?restype=container", "acquire", "x-ms-lease-duration", "-1").expect(201)
	b.blob("one/a", "a", "Content-Type", "text/plain; q='1'", "x-ms-meta-k", "v<&>\tw", "Cache-Control", "no-cache")
	b.blob("one/dir%2Fb%20%26%3Cc%3E%0A%C3%A4", "")
	b.lease("/one/a", "acquire", "x-ms-lease-duration", "15").expect(201)
	b.ask("PUT", "/one/a?comp=snapshot", "").expect(201)
	b.ask("PUT", "/one/copy", "", "x-ms-copy-source", "https://127.0.0.1/"+testAccount+"/one/a").expect(202)
	b.ask("PUT", "/one/parts?comp=block&blockid="+url.QueryEscape(id), "part").expect(201)
	b.ask("PUT", "/one/parts?comp=blocklist", "<BlockList><Latest>"+id+"</Latest></BlockList>").expect(201)
	b.ask("PUT", "/one/parts?comp=block&blockid="+url.QueryEscape(id), "again").expect(201)

	var text strings.Builder
	for _, target := range []string{
		"?comp=list",
		"?comp=list&include=metadata&prefix=t&maxresults=5",
		"?comp=list&prefix=none",
		"?comp=list&maxresults=1",
		"?restype=service&comp=properties",
		"/one?restype=container&comp=acl",
		"/one?restype=container&comp=list",
		"/one?restype=container&comp=list&include=metadata,snapshots,copy",
		"/one?restype=container&comp=list&delimiter=%2F&prefix=d",
		"/one?restype=container&comp=list&delimiter=%2F&maxresults=1",
		"/one?restype=container&comp=list&maxresults=1&marker=" + nextMarker("copy"),
		"/two?restype=container&comp=list&prefix=%3C%01%26",
		"/one/parts?comp=blocklist&blocklisttype=all",
		"/one/parts?comp=blocklist",
		"/one/a?comp=blocklist",
		"/one/none",
		"/one/none?comp=%3Codd%26%01%0A%22%3E",
		"/one?restype=container&comp=list&marker=%2A",
	} {
		body := b.ask("GET", target, "").body
		for _, c := range changing {
			body = c.form.ReplaceAllString(body, c.word)
		}
		fmt.Fprintf(&text, "GET %s\n%s\n\n", target, body)
	}
	compareGolden(t, "documents.txt", text.String())
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	old, now := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(old), len(now)) {
		if old[i] != now[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, now[i], old[i])
		}
	}
	if len(old) != len(now) {
		t.Errorf("got %d lines, want %d", len(now), len(old))
	}
}
