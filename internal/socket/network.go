package socket

import (
	"net"
	"net/netip"
)

// Network returns what counts as one address, of an address with or without a port: of IPv6 that is a /64, since
// anybody who has one address there has all of them. What is no address is the zero Prefix.
func Network(from string) netip.Prefix {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	a = a.Unmap().WithZone("")
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // both fit
	return p
}
