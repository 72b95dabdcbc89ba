package door

import (
	"net"
	"net/url"
	"strings"
)

// A Tool is a program that people reach a server with, and what to paste for it.
type Tool struct {
	ID   string // to ask for it by
	Name string
	What string // it is used for, or does, in a sentence

	// Text returns the lines to paste.
	Text func(Place) string
}

// A Place is a server as a tool sees it.
type Place struct {
	Origin    string // such as https://leases.example:4653
	Namespace string
	Access    bool   // it asks who comes
	Own       string // host:port of the door's own port; empty: it has none, or it is turned off
}

// Host returns the host and port of the server.
func (p Place) Host() string {
	u, err := url.Parse(p.Origin)
	if err != nil {
		return ""
	}
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "https" {
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// Secure reports whether the server speaks TLS.
func (p Place) Secure() bool { return strings.HasPrefix(p.Origin, "https:") }

// Lines joins the lines of a text, without those that are empty.
func Lines(lines ...string) string {
	kept := lines[:0:0]
	for _, line := range lines {
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// If returns a line if something is so, and else none.
func If(so bool, line string) string {
	if so {
		return line
	}
	return ""
}

// An Entrance is a door as a server has opened it.
type Entrance struct {
	Kind      Kind
	On        bool
	URL       string   // of the port that doors share
	Own       string   // the address of the door's own port; empty: it has none
	Addresses []string // that it listens on
}

// At returns where a door's own port is for those who reach the server at an origin: at the same host, whatever
// address it listens on; empty: it has none.
func (e Entrance) At(origin string) string {
	_, port, err := net.SplitHostPort(e.Own)
	u, bad := url.Parse(origin)
	if err != nil || bad != nil {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), port)
}
