package node

import (
	"net"
	"net/url"

	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/listen"
)

// clientHosts are the names that the client port answers to: those that were set, the one that
// others tell clients, the one that it listens on, and those of its certificate.
func clientHosts(c Config, listener net.Listener, ring *certificate.Keyring) *listen.Hosts {
	names := append([]string{hostOf(c.Listen)}, c.HostNames...)
	if u, err := url.Parse(advertised(c, listener)); err == nil {
		names = append(names, u.Hostname())
	}
	return listen.NewHosts(certified(ring), names...)
}

// azureHosts are the names that the port for Azure's clients answers to.
func azureHosts(c Config, ring *certificate.Keyring) *listen.Hosts {
	domain := c.Azure.Domain
	names := append([]string{hostOf(c.Azure.Listen), domain, "blob." + domain, "*.blob." + domain}, c.HostNames...)
	return listen.NewHosts(certified(ring), names...)
}

// certified reports which names a certificate has; nil: there is none.
func certified(ring *certificate.Keyring) func(string) bool {
	if ring == nil {
		return nil
	}
	return ring.Covers
}

func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
