package door

import (
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/internal/certificate"
	"github.com/leasehold/leasehold/internal/listen"
)

// A Kind is a door as a server lists it, before it is opened.
type Kind struct {
	Name     string    // in the journal, in metrics and in logs
	What     string    // it speaks, and to whom, in a few words
	Tools    []Tool    // that it is for
	Settings []Setting // what can be set of it, beside what every server has

	// Check says what is wrong with settings that are right one by one. Nil: nothing can be.
	Check func(Settings) error

	// Open opens the door. It is called before the server has found its cluster: the backend
	// has no engine yet, and the door's requests come only when it has. Open may read files;
	// an error ends the server.
	Open func(*Backend, Settings) (Door, error)
}

// A Door is what a kind opens. The zero Door is one that is turned off.
type Door struct {
	HTTP     HTTP      // routes on the port that all doors share
	Protocol *Protocol // something other than HTTP on that port; nil: nothing
	Port     *Port     // a port of its own; nil: none
	Off      bool      // it is turned off, and what it answers says so
}

// On reports whether the door is open.
func (d *Door) On() bool { return !d.Off && (d.Port != nil || d.Shared()) }

// Shared reports whether the door is at the port that all doors share.
func (d *Door) Shared() bool { return d.Protocol != nil || len(d.HTTP.Routes) > 0 }

// A Port is a port of one door alone.
type Port struct {
	Name    string // in logs and metrics, such as "azure"
	Clients string // who comes to it, in the log of its certificates, such as "azure clients"
	Address string // to listen on
	Setting string // the setting that has the address, for errors

	TLS       certificate.Files // without Cert it is plain
	SharedTLS bool              // instead: the certificates of the port that all doors share, if that has some
	Hosts     []string          // names that it answers to, beside those of its certificate

	HTTP     HTTP
	Protocol *Protocol // if set, what its connections speak; without Matches all of them do, and there is no HTTP

	MaxConnections int           // 0: 4,000
	MaxHeader      int           // bytes of a request's headers; 0: 16 KiB
	HeaderTime     time.Duration // for them to come; 0: 5s
	ReadTime       time.Duration // for a whole request; 0: the door sees to it
	WriteTime      time.Duration // for a whole answer; 0: the door sees to it
	OnlyHTTP1      bool          // HTTP/2 is not offered
	Quiet          bool          // a failed handshake is no warning: anybody can cause one

	// Wrap makes the door's own connection of one that has been let in, above TLS; ConnOf finds
	// it again. Nil: there is none.
	Wrap func(net.Conn) net.Conn

	// Opened is called once, when the port is open. Nil: nobody is.
	Opened func(address string)
}

// A Setting is one thing that can be set of a door: by a flag, in the file, or by a variable.
type Setting struct {
	Name    string // of the flag and of the key in the file
	Default string
	Help    string
	Switch  bool                     // true or false; the flag alone means true
	Check   func(value string) error // nil: any text is allowed
}

// Settings are the values of a door's settings, by name.
type Settings map[string]string

// The words of package listen that doors use.
type (
	HTTP     = listen.HTTP
	Route    = listen.Route
	Protocol = listen.Protocol
	Fault    = listen.Fault
)

// CheckAddress says what is wrong with an address to listen on. Empty: there is none.
func CheckAddress(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("write it as host:port, such as 127.0.0.1:4653")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("the port is a number from 0 (any that is free) to 65535")
	}
	return nil
}
