package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/leasehold/leasehold"
)

// listenPeers takes the address for other servers; nil: there is none.
func (c Config) listenPeers() (net.Listener, error) {
	if c.peerListener != nil {
		return c.peerListener, nil
	}
	if c.PeerListen == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", c.PeerListen)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --peer-listen", err)
	}
	if c.PeerTLS == nil && !c.mayBePlain(listener.Addr()) {
		_ = listener.Close()
		return nil, &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(
			"traffic between servers on %s needs certificates: give them, or, on one machine alone, use a loopback "+
				"address and --insecure", listener.Addr())}
	}
	return listener, nil
}

// mayBePlain reports whether traffic with an address needs no certificates. Only loopback, and
// only if it was asked for: anybody who can reach a peer port without a certificate could vote.
func (c Config) mayBePlain(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return c.Insecure && ok && tcp.IP.IsLoopback()
}

// dialPeer returns how to connect to another server: without certificates only within this
// machine. The address that counts is the one connected to, not the name that was resolved.
func (c Config) dialPeer() func(context.Context, string) (net.Conn, error) {
	if c.peerDial != nil || c.PeerTLS != nil {
		return c.peerDial
	}
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil && !c.mayBePlain(conn.RemoteAddr()) {
			_ = conn.Close()
			return nil, errors.New("it is on another machine, and there are no certificates")
		}
		return conn, err
	}
}

// peerAddress is where others are told to find this server.
func (c Config) peerAddress(listener net.Listener) string {
	switch {
	case c.PeerAdvertise != "":
		return c.PeerAdvertise
	case listener != nil:
		return listener.Addr().String()
	}
	return ""
}
