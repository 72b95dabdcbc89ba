package v1

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// ServerURL completes the address of a server: the URL of a client that was given one, or a host, or
// host:port. A host without a scheme means the port 4653, over TLS if secure is set. The URL has no slash at
// its end.
func ServerURL(address string, secure bool) (string, error) {
	address = strings.TrimSpace(address)
	bare := !strings.Contains(address, "://")
	if bare {
		if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
			address = "[" + address + "]"
		}
		scheme := "http://"
		if secure {
			scheme = "https://"
		}
		address = scheme + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https", strings.HasSuffix(u.Host, ":"):
		return "", errors.New("write it as http://host:port, or as a host alone, which means port " + defaultPort)
	case u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return "", errors.New("leave out what follows the path")
	case u.User != nil:
		return "", errors.New("leave out the user and password: they would be shown in every process list")
	}
	if bare && u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), defaultPort)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// defaultPort is that of DefaultServer.
const defaultPort = "4653"
