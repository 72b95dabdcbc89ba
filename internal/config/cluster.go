package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/store"
)

func setName(c *Config, value string) error {
	c.Server.Name = value
	return certificate.CheckName(value)
}

func setPeerListen(c *Config, value string) (err error) {
	c.Server.PeerListen = value
	if value != "" {
		_, err = host(value)
	}
	return err
}

func setPeerAdvertise(c *Config, value string) error {
	c.Server.PeerAdvertise = value
	if value == "" {
		return nil
	}
	return reachable(value)
}

func setAdvertise(c *Config, value string) (err error) {
	if value != "" {
		c.Server.Advertise, err = v1.ServerURL(value, false)
	}
	return err
}

func setInitialCluster(c *Config, value string) error {
	for part := range parts(value) {
		name, address, found := strings.Cut(part, "=")
		if !found {
			return fmt.Errorf("%q has no =: write it as n1=10.0.0.1:4654,n2=10.0.0.2:4654,n3=10.0.0.3:4654", part)
		}
		if err := certificate.CheckName(name); err != nil {
			return err
		}
		if err := reachable(address); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		for _, m := range c.Server.InitialCluster {
			switch {
			case m.Name == name:
				return fmt.Errorf("%s is listed twice: each server has a name of its own", name)
			case m.Peer == address:
				return fmt.Errorf("%s and %s have the same address %s: each server has its own", m.Name, name, address)
			}
		}
		c.Server.InitialCluster = append(c.Server.InitialCluster, Member{name, address})
	}
	return nil
}

func setJoin(c *Config, value string) error {
	for part := range parts(value) {
		if err := reachable(part); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		c.Server.Join = append(c.Server.Join, part)
	}
	return nil
}

// parts are those of a list; an empty text has none.
func parts(value string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); (part != "" || value != "") && !yield(part) {
				return
			}
		}
	}
}

func setFileOf(of func(*Config) *string) func(*Config, string) error {
	return func(c *Config, value string) error {
		*of(c) = value
		return nil
	}
}

// reachable checks an address that others are to call.
func reachable(address string) error {
	h, port, err := net.SplitHostPort(address)
	if err != nil || h == "" {
		return errors.New("write it as host:port, such as 10.0.0.1:4654")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("the port is a number from 1 to 65535")
	}
	if wildcard(h) {
		return fmt.Errorf("%s is every address of a machine: write the one at which the others reach it", h)
	}
	return nil
}

func wildcard(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// URL is how clients write the address that a server listens on.
func (s *Server) URL(address string) string {
	if s.TLS.Cert != "" {
		return "https://" + address
	}
	return "http://" + address
}

// checkTLS says what is wrong with the certificates of the client port.
func (s *Server) checkTLS() error {
	switch {
	case s.TLS.Cert == "" && s.TLS.Key == "" && s.TLS.CA != "":
		return errors.New("tls-client-ca is for a port with TLS: give --tls-cert and --tls-key too")
	case s.TLS.Cert == "" && s.TLS.Key != "":
		return errors.New("tls-key is the key of a certificate: give --tls-cert too")
	case s.TLS.Cert != "" && s.TLS.Key == "":
		return errors.New("tls-cert needs its key: give --tls-key too")
	}
	return nil
}

// Local reports whether only this machine can reach the client port.
func (s *Server) Local() bool {
	h, err := host(s.Listen)
	return err == nil && loopback(h)
}

// exposed refuses to let strangers in by accident at the client port.
func (s *Server) exposed() error { return s.Exposed("listen", s.Listen) }

// Exposed refuses to let strangers in by accident at an address, which a setting has, with the certificates of the
// client port. Certificates alone keep strangers out, and still let everybody inside do everything.
func (s *Server) Exposed(setting, address string) error {
	if h, err := host(address); err != nil || loopback(h) || s.Insecure {
		return nil
	}
	const tls = "--tls-cert and --tls-key (leasehold cert makes the files)"
	var danger, missing string
	switch {
	case s.TLS.Cert == "" && !s.Access:
		danger, missing = "anybody there could read and end every lease", tls+", and --access"
	case s.TLS.Cert == "":
		danger, missing = "tokens would cross the network in plain", tls
	case !s.Access && s.TLS.CA != "":
		danger, missing = "everybody with a certificate could end every lease", "--access"
	case !s.Access:
		danger, missing = "anybody there could end every lease", "--access"
	default:
		return nil
	}
	return fmt.Errorf("%s is %q: other machines can reach that address, and %s: give %s; or listen on 127.0.0.1; "+
		"or give --insecure if you accept that", setting, address, danger, missing)
}

// checkPeers settles what follows from the list of servers, and says what is wrong with
// all that has to do with them.
func (s *Server) checkPeers() error {
	problems := []error{s.checkBeginning(), s.checkPeerTLS()}
	if s.PeerAdvertise == "" {
		s.PeerAdvertise = s.PeerListen
	}
	if errors.Join(problems...) != nil || s.PeerListen == "" {
		return errors.Join(problems...)
	}
	h, _, err := net.SplitHostPort(s.PeerAdvertise)
	if err != nil {
		return nil // which was said where it was set
	}
	if wildcard(h) {
		problems = append(problems, fmt.Errorf("peer-listen is %q, which is every address of this machine: tell "+
			"the others which one to use with --peer-advertise HOST:PORT", s.PeerListen))
	}
	return errors.Join(append(problems, s.plainPeers())...)
}

// twoBeginnings refuses a server that is to begin a cluster and to join one, and says where that is set.
func (r *resolver) twoBeginnings(s *Server) error {
	if len(s.InitialCluster) == 0 || len(s.Join) == 0 {
		return nil
	}
	origin := map[string]string{}
	for _, setting := range r.settings {
		origin[setting.Key.Name] = setting.Origin
	}
	return fmt.Errorf("initial-cluster (%s) begins a cluster, and join (%s) joins one that runs: leave one of them out",
		origin["initial-cluster"], origin["join"])
}

// checkBeginning looks at how this server comes to its cluster.
func (s *Server) checkBeginning() error {
	if len(s.Join) > 0 && s.PeerListen == "" {
		return errors.New("join needs an address at which the others reach this server: give --peer-listen HOST:PORT")
	}
	if s.PeerListen == "" && s.PeerAdvertise != "" && len(s.InitialCluster) == 0 {
		return errors.New("peer-advertise tells others of an address at which nothing listens: give --peer-listen too")
	}
	if len(s.InitialCluster) == 0 {
		return nil
	}
	i := slices.IndexFunc(s.InitialCluster, func(m Member) bool { return m.Name == s.Name })
	if i < 0 {
		var names []string
		for _, m := range s.InitialCluster {
			names = append(names, m.Name)
		}
		return fmt.Errorf("initial-cluster has %s, and this server is called %s: give --name one of them, or "+
			"add %s=HOST:PORT to the list of all servers",
			strings.Join(names, ", "), s.Name, s.Name)
	}
	own := s.InitialCluster[i].Peer
	if s.PeerAdvertise != "" && s.PeerAdvertise != own {
		return fmt.Errorf("peer-advertise is %s, and initial-cluster has %s for %s: leave peer-advertise out, "+
			"or write the same in both", s.PeerAdvertise, own, s.Name)
	}
	s.PeerAdvertise = own
	if s.PeerListen == "" {
		s.PeerListen = own
	}
	return nil
}

func (s *Server) checkPeerTLS() error {
	var given, missing []string
	for _, f := range []struct{ name, value string }{{"peer-cert", s.PeerTLS.Cert}, {"peer-key", s.PeerTLS.Key},
		{"peer-ca", s.PeerTLS.CA}} {
		if f.value != "" {
			given = append(given, f.name)
		} else {
			missing = append(missing, "--"+f.name)
		}
	}
	switch {
	case len(given) == 0:
		return nil
	case len(missing) > 0:
		return fmt.Errorf("%s alone: servers trust each other by all three; give %s too",
			strings.Join(given, " and "), strings.Join(missing, " and "))
	case s.PeerListen == "":
		return fmt.Errorf("%s are for talking to other servers, and there is no address for that: give "+
			"--peer-listen or --initial-cluster", strings.Join(given, ", "))
	}
	return nil
}

// plainPeers refuses to send the log over a network that others can listen to, or to take
// it from anybody.
func (s *Server) plainPeers() error {
	if s.PeerTLS.Cert != "" {
		return nil
	}
	addresses := append([]string{s.PeerListen, s.PeerAdvertise}, s.Join...)
	for _, m := range s.InitialCluster {
		addresses = append(addresses, m.Peer)
	}
	for _, address := range addresses {
		if h, _, _ := net.SplitHostPort(address); !loopback(h) {
			return fmt.Errorf("servers reach each other at %s, which other machines can reach, too: give "+
				"--peer-cert, --peer-key and --peer-ca (leasehold cert makes the files); "+
				"without them all addresses are on 127.0.0.1", address)
		}
	}
	if !s.Insecure {
		return errors.New("servers would talk to each other without certificates: give --insecure if you trust " +
			"everybody on this machine, " +
			"or --peer-cert, --peer-key and --peer-ca (leasehold cert makes the files)")
	}
	return nil
}

// checkTLS says what is wrong with the certificates of a command.
func (c *Client) checkTLS() error {
	var secure bool
	for _, server := range c.Servers {
		secure = secure || strings.HasPrefix(server, "https://")
	}
	switch {
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		return errors.New("cert and key go together: give both, or neither")
	case len(c.Servers) == 1 && store.Names(c.Servers[0]) && c.TLS != (certificate.Files{}):
		return fmt.Errorf("ca, cert and key are for Leasehold servers: put the certificates of %s into the parameters "+
			"of its URL", store.Redact(c.Server))
	case !secure && c.TLS != (certificate.Files{}):
		return fmt.Errorf("ca, cert and key are for servers with TLS, and server is %s: write it as "+
			"https://host:port", c.Server)
	}
	return nil
}
