package v1_test

import (
	"net/url"
	"strings"
	"testing"

	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestServerURL(t *testing.T) {
	for _, test := range []struct{ given, plain, secure string }{
		{"127.0.0.1", "http://127.0.0.1:4653", "https://127.0.0.1:4653"},
		{" n1.example ", "http://n1.example:4653", "https://n1.example:4653"},
		{"localhost:1", "http://localhost:1", "https://localhost:1"},
		{"::1", "http://[::1]:4653", "https://[::1]:4653"},
		{"[::1]", "http://[::1]:4653", "https://[::1]:4653"},
		{"[::1]:2", "http://[::1]:2", "https://[::1]:2"},
		{"n1/leases/", "http://n1:4653/leases", "https://n1:4653/leases"},
		// Somebody who writes a scheme has a URL, whose port is the usual one of the scheme.
		{"http://a", "http://a", "http://a"},
		{"https://a/leases/", "https://a/leases", "https://a/leases"},
		{"http://a:1/", "http://a:1", "http://a:1"},
		{"", "", ""}, {":4653", "", ""}, {"a:", "", ""}, {"a:b", "", ""}, {"http://", "", ""}, {"ftp://a", "", ""},
		{"http://u:p@a", "", ""}, {"u:p@a", "", ""}, {"http://a/?x=1", "", ""}, {"a#b", "", ""}, {"http://a b", "", ""},
	} {
		for secure, want := range map[bool]string{false: test.plain, true: test.secure} {
			got, err := v1.ServerURL(test.given, secure)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("%q, secure %v: got %q, %v; want %q", test.given, secure, got, err, want)
			}
		}
	}
}

// Whatever is accepted is a URL of a host, and completing it again changes nothing.
func FuzzServerURL(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "[::1]:2", "fe80::1%eth0", "http://a:1/", "a/b/", "a:", "%zz", "http://[::1", "a,b"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, secure bool) {
		got, err := v1.ServerURL(s, secure)
		if err != nil {
			return
		}
		u, err := url.Parse(got)
		if err != nil || u.Hostname() == "" || u.User != nil || strings.HasSuffix(got, "/") {
			t.Fatalf("%q became %q: %v", s, got, err)
		}
		if again, err := v1.ServerURL(got, !secure); err != nil || again != got {
			t.Fatalf("%q became %q and then %q: %v", s, got, again, err)
		}
	})
}
