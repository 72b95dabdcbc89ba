package azure

import (
	"net"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/door"
)

// Times of one request on its connection. A body may take as long as it likes, as long
// as something of it comes.
const (
	headerTime = 10 * time.Second
	pieceTime  = 30 * time.Second // for the next piece of a body, in either direction
)

// pace is how fast a body has to pass, in either direction, however steadily it drips.
var pace = door.Pace{Time: pieceTime, Whole: time.Hour}

// hurry gives a body that nobody reads, and the end of an answer that nobody takes, some
// time: net/http waits for either, and of its own without end.
func (c *call) hurry() (atEnd func()) {
	control := http.NewResponseController(c.w) // in tests there may be nothing to control
	_ = control.SetWriteDeadline(time.Time{})
	if c.r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Now().Add(pieceTime))
	}
	return func() { _ = control.SetWriteDeadline(time.Now().Add(pieceTime)) }
}

const maxHeader = 64 << 10

// Port returns the port that the door has for itself: its clients name accounts in the host or
// in the path, and want TLS. HTTP/2 has no reason phrase and is not offered.
func (d *Door) Port() *door.Port {
	return &door.Port{
		Name: doorName, Clients: "azure clients", Setting: "azure-listen",
		Hosts: []string{d.config.Domain, "blob." + d.config.Domain, "*.blob." + d.config.Domain},
		HTTP:  door.HTTP{Routes: []door.Route{{Handler: d, AnySite: true}}, Refuse: d.refuse},
		Quiet: true, MaxHeader: maxHeader, HeaderTime: headerTime, OnlyHTTP1: true,
		Wrap: func(c net.Conn) net.Conn { return &conn{Conn: c} },
	}
}
