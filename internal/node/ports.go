package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/listen"
	"github.com/leasehold/leasehold/internal/telemetry"
)

// maxProfilers is how many connections the port for profiles takes.
const maxProfilers = 100

// openPorts opens all ports, with the doors behind them. They answer before there is an engine:
// a server may wait for others of its cluster for long, and should say so.
func (s *server) openPorts(ctx context.Context) error {
	ring, err := s.clientRing()
	if err != nil {
		return err
	}
	// The address first: a second server on it should not touch the data.
	if s.listener, err = openPort(ctx, s.Listen, "listen"); err != nil {
		return err
	}
	opened, err := openDoors(s.backend, s.Config)
	if err != nil {
		return err
	}
	shared := s.port(listenTLS(ring))
	shared.Mutual, shared.Hosts = s.TLS.CA != "", s.clientHosts(ring)
	s.ports[door.NewHost(s.backend, shared, opened...)] = s.listener
	entrances := make([]door.Entrance, len(opened))
	for i, d := range opened {
		e := &entrances[i]
		e.Kind, e.On, e.URL = doors[i], d.On(), advertised(s.Config, s.listener)
		if d.Shared() {
			e.Addresses = append(e.Addresses, s.listener.Addr().String())
		}
		if d.Port == nil {
			continue
		}
		if e.Own, err = s.openOwn(ctx, d.Port, ring); err != nil {
			return err
		}
		e.Addresses = append(e.Addresses, e.Own)
	}
	s.backend.SetEntrances(entrances)
	return s.openPprof(ctx)
}

// port is what all ports have alike.
func (s *server) port(secure *tls.Config) listen.Config {
	return listen.Config{TLS: secure, Log: s.log, Gates: s.gates, Linger: s.DrainLinger, DrainTimeout: s.DrainTimeout}
}

// openOwn opens the port that a door has for itself, and returns its address. shared has the certificates of the port
// that all doors share.
func (s *server) openOwn(ctx context.Context, p *door.Port, shared *certificate.Keyring) (string, error) {
	var ring *certificate.Keyring
	var err error
	switch {
	case p.SharedTLS:
		if err := s.Exposed(p.Setting, p.Address); err != nil {
			return "", &leasehold.Error{Code: leasehold.Invalid, Message: err.Error()}
		}
		ring = shared
	case p.TLS.Cert != "":
		if ring, err = s.openRing(p.TLS, p.Clients); err != nil {
			return "", err
		}
	}
	listener, err := openPort(ctx, p.Address, p.Setting)
	if err != nil {
		return "", err
	}
	own := s.port(listenTLS(ring))
	own.Mutual = p.SharedTLS && s.TLS.CA != ""
	own.Hosts = listen.NewHosts(certified(ring), append(p.Hosts, s.HostNames...)...)
	s.ports[door.NewOwnHost(s.backend, own, p)] = listener
	if p.Opened != nil {
		p.Opened(listener.Addr().String())
	}
	return listener.Addr().String(), nil
}

// openPprof opens the port for profiles, if an address is given. It has a state of its own: how
// a server starts is worth a profile, too. One that is under way when the server stops is
// answered with what it has.
func (s *server) openPprof(ctx context.Context) error {
	if s.PprofListen == "" {
		return nil
	}
	listener, err := openPort(ctx, s.PprofListen, "pprof-listen")
	if err != nil {
		return err
	}
	profiles := s.port(nil)
	profiles.Name, profiles.MaxConnections, profiles.EndRequests = "profiles", maxProfilers, true
	profiles.Hosts = listen.NewHosts(nil, s.HostNames...)
	profiles.HTTP = []listen.HTTP{{Routes: []listen.Route{{Handler: telemetry.PprofHandler(), AnySite: true}}}}
	s.ports[listen.NewHost(profiles)] = listener
	s.log.Info("profiles are served", "address", listener.Addr())
	return nil
}

// closePorts gives back the addresses of a server that does not serve.
func (s *server) closePorts() {
	for _, listener := range s.ports {
		_ = listener.Close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

// openPort listens on an address, which a setting has.
func openPort(ctx context.Context, address, setting string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with --%s", err, setting)
	}
	return listener, nil
}

// clientHosts are the names that the client port answers to: those that were set, the one that
// others tell clients, the one that it listens on, and those of its certificate.
func (s *server) clientHosts(ring *certificate.Keyring) *listen.Hosts {
	host, _, _ := net.SplitHostPort(s.Listen)
	names := append([]string{host}, s.HostNames...)
	if u, err := url.Parse(advertised(s.Config, s.listener)); err == nil {
		names = append(names, u.Hostname())
	}
	return listen.NewHosts(certified(ring), names...)
}

// certified reports which names a certificate has; nil: there is none.
func certified(ring *certificate.Keyring) func(string) bool {
	if ring == nil {
		return nil
	}
	return ring.Covers
}
