// Package listen has what all ports of a server share: the host names that they answer to, how
// many connections they take and from whom, and how they stop.
package listen

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Hosts are the host names by which a port may be called.
//
// A browser lets a page talk to its own origin, and an origin is a name. The owner of a name
// can let it resolve to any address, also to one that only this machine or this network can
// reach, and the page then reads and writes what is there (DNS rebinding). The browser still
// says which name it called: one that is not ours is refused.
//
// A nil Hosts answers to every name.
type Hosts struct {
	names     []string          // in lower case; "*.example.com" stands for one label in front
	certified func(string) bool // reports whether the port's certificate has a name; nil: there is none
}

// NewHosts returns the names of a port. Empty ones are left out. certified reports whether the
// port's certificate has a name; nil if the port is plain.
func NewHosts(certified func(host string) bool, names ...string) *Hosts {
	h := &Hosts{certified: certified}
	for _, name := range names {
		if name = tidyHost(name); name != "" && !slices.Contains(h.names, name) {
			h.names = append(h.names, name)
		}
	}
	return h
}

// Allows reports whether a request may be sent to a host, as its Host header says it, with or
// without a port. Addresses and names of the machine itself are always allowed: nobody can let
// them resolve to anything else. So is no host at all, which browsers never send.
func (h *Hosts) Allows(host string) bool {
	if h == nil || host == "" {
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	host = tidyHost(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(h.names, func(name string) bool { return matches(name, host) }) ||
		h.certified != nil && h.certified(host)
}

// Refusal says what to do about a host that is not allowed.
func (h *Hosts) Refusal(host string) string {
	if len(host) > 100 {
		host = host[:100] + "…"
	}
	where := "if it is one of this server's names, add it to the setting host-names (serve --host-names NAME)"
	if h.certified != nil {
		where += ", or use a certificate that has it"
	}
	return fmt.Sprintf("this server does not answer to the host name %q: use its address or advertised "+
		"name; %s", host, where)
}

// Guard refuses requests to other hosts in plain text, and hands the rest to next.
func (h *Hosts) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.Allows(r.Host) {
			http.Error(w, h.Refusal(r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func matches(name, host string) bool {
	if domain, ok := strings.CutPrefix(name, "*."); ok {
		_, rest, found := strings.Cut(host, ".")
		return found && rest == domain
	}
	return name == host
}

func tidyHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
