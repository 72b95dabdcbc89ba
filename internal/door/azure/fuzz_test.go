package azure

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/azureblob"
)

func FuzzGUID(f *testing.F) {
	for _, s := range []string{idA, "{" + idA + "}", "(" + idA + ")", "{0x0f8fad5b,0xd9cb,0x469f,{0xa1,0x65,0x70,0x86,0x77,0x28,0x95,0x0e}}", "", "{0x", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		guid, ok := azureblob.ParseGUID(s)
		if !ok {
			return
		}
		if again, ok := azureblob.ParseGUID(guid); !ok || again != guid || len(guid) != 36 {
			t.Errorf("%q is %q, which is %q", s, guid, again)
		}
	})
}

func FuzzAuthorization(f *testing.F) {
	f.Add("SharedKey leasehold:AAAA", "Sun, 15 Nov 2026 20:00:00 GMT", "/leasehold/c/b", "comp=metadata", "x-ms-meta-a", "1")
	f.Add("Bearer a.b.c", "", "/a", "", "Range", "bytes=0-")
	f.Add("SharedKeyLite :", "never", "//", "a=b&A=c&%zz", "X-Ms-", "\t")
	b := newBench(f)
	f.Fuzz(func(t *testing.T, authorization, date, path, query, name, value string) {
		r := httptest.NewRequest("PUT", "https://127.0.0.1/", strings.NewReader("x"))
		r.RequestURI = "/" + path + "?" + query
		r.Header.Set("Authorization", authorization)
		r.Header.Set("X-Ms-Date", date)
		r.Header[name] = []string{value}
		got := b.send(r)
		if got.status < 400 {
			t.Errorf("it was let in with %d", got.status)
		}
		values, _ := url.ParseQuery(query)
		if text := stringToSign(r, testAccount, path, values); !strings.HasPrefix(text, "PUT\n") {
			t.Errorf("got %q", text)
		}
	})
}

func FuzzBlockList(f *testing.F) {
	f.Add("<BlockList><Latest>QQ==</Latest><Committed>Qg==</Committed></BlockList>")
	f.Add("<BlockList/>")
	f.Add("<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"c\">]><BlockList><Latest>&b;</Latest></BlockList>")
	f.Add("<BlockList><Latest><Latest></Latest></Latest></BlockList>")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseBlockList([]byte(s))
		if err != nil {
			return
		}
		for _, l := range list {
			name, ok := blockName(l.id)
			if !ok || blockID(name) == "" {
				t.Errorf("%q is a block", l.id)
			}
		}
	})
}

func FuzzRange(f *testing.F) {
	f.Add("bytes=0-5", int64(10))
	f.Add("bytes=-5", int64(10))
	f.Add("bytes=5-", int64(5))
	f.Add("bytes=9223372036854775807-9223372036854775807", int64(1))
	f.Fuzz(func(t *testing.T, s string, size int64) {
		if size < 0 {
			size = -(size + 1)
		}
		part, err := parseRange(s, size)
		if err != nil {
			return
		}
		if part.from < 0 || part.length < 0 || part.from+part.length > size || !part.whole && part.length == 0 {
			t.Errorf("%q of %d is %+v", s, size, part)
		}
	})
}

func FuzzSAS(f *testing.F) {
	f.Add("sv=2021-12-02&sr=b&sp=r&se=2030-01-01T00%3A00%3A00Z&sig=AAAA")
	f.Add("sv=2021-12-02&ss=b&srt=sco&sp=rwdl&se=2030-01-01&sip=1.2.3.4-5&spr=http&sig=AAAA")
	f.Add("sig=%00&sv=9999-99-99&skoid=1")
	b := newBench(f)
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		at := azureblob.Place{Account: testAccount, Container: "box", Blob: "x"}
		c := &call{door: b.door, r: httptest.NewRequest("GET", "https://127.0.0.1/", nil), at: at}
		for i := range operations {
			if c.checkSAS(q, at, &operations[i]) == nil {
				t.Fatalf("%s: it was let in", operations[i].name)
			}
		}
		_ = checkTimes(q.Get("st"), q.Get("se"), time.Now())
		_ = addressAllowed(q.Get("sip"), "127.0.0.1:1")
	})
}
