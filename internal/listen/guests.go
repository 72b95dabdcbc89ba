package listen

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Guest is a client program as it names itself, with how many connections it has at one port.
type Guest struct {
	Port        string
	Door        string // that it asked last; empty: it has not asked anything yet
	Client      string // such as "curl/8.5.0"; empty: it has no name
	Connections int
}

// maxClientName is how much of a client's name is kept, in bytes.
const maxClientName = 128

// An introduction is what a connection's client has said of itself.
type introduction struct{ door, client string }

// Meet notes which door the client of a connection uses and what it calls itself. What was said last
// counts.
func Meet(c net.Conn, door, client string) {
	conn := ConnOf(c)
	if conn == nil {
		return
	}
	client = legible(client)
	if met := conn.met.Load(); met == nil || *met != (introduction{door, client}) {
		conn.met.Store(&introduction{door, client})
	}
}

// legible returns a client's name as it can be shown: it is the client's own word.
func legible(name string) string {
	if len(name) > maxClientName {
		name = name[:maxClientName]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
}

// Guests returns who is connected, ordered by port, door and name.
func (s *Gates) Guests() []Guest {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	gates := slices.Clone(s.all)
	s.mu.Unlock()
	counts := map[Guest]int{}
	for _, g := range gates {
		g.countGuests(counts)
	}
	all := make([]Guest, 0, len(counts))
	for guest, n := range counts {
		guest.Connections = n
		all = append(all, guest)
	}
	slices.SortFunc(all, func(a, b Guest) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Door, b.Door), cmp.Compare(a.Client, b.Client))
	})
	return all
}

func (g *Gate) countGuests(counts map[Guest]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		guest := Guest{Port: g.limits.Name}
		if met := c.met.Load(); met != nil {
			guest.Door, guest.Client = met.door, met.client
		}
		counts[guest]++
	}
}
