package outlook

import (
	"net"
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/door"
)

// maxServerName is what a DNS name of a certificate can have as one label.
const maxServerName = 63

// CheckServer says what is wrong with the name of a server.
func CheckServer(name string) error {
	if err := door.CheckName("name", name, leasehold.MaxName); err != nil {
		return err
	}
	if len(name) > maxServerName {
		return door.Invalid("name has %d bytes: that of a server has at most %d", len(name), maxServerName)
	}
	return nil
}

// CheckNewServer says why a server cannot be started, or certified, under a name.
func CheckNewServer(name string) error {
	if err := certificate.CheckName(name); err != nil {
		return door.Invalid("name %v", err)
	}
	return nil
}

// CheckPeer says what is wrong with an address that other servers are to call.
func CheckPeer(address string) error {
	if err := door.CheckName("peer", address, leasehold.MaxName); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || notNumber != nil || n == 0 {
		return door.Invalid("peer %s is not an address: write it as host:port, such as 10.0.0.4:4654",
			door.Brief(address))
	}
	return nil
}
