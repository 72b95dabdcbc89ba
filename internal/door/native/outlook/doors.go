package outlook

import (
	"net/url"
	"slices"

	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/doors"
	"github.com/leasehold/leasehold/internal/door"
)

// Doors returns what a server speaks, and who uses it.
func Doors(entrances []door.Entrance, guests []door.Guest) doors.Doors {
	list := doors.Doors{Items: []doors.DoorStatus{}}
	for _, e := range entrances {
		status := doors.DoorStatus{Name: e.Kind.Name, What: e.Kind.What, On: e.On, Clients: []doors.DoorClient{}}
		if e.On {
			status.Addresses = e.Addresses
		}
		for _, g := range guests {
			if g.Door == e.Kind.Name {
				greet(&status, g)
			}
		}
		list.Items = append(list.Items, status)
	}
	return list
}

// greet adds a client to those of a door, which may have two ports.
func greet(status *doors.DoorStatus, g door.Guest) {
	status.Connections += g.Connections
	known := func(c doors.DoorClient) bool { return c.Client == g.Client }
	if i := slices.IndexFunc(status.Clients, known); i >= 0 {
		status.Clients[i].Connections += g.Connections
		return
	}
	status.Clients = append(status.Clients, doors.DoorClient{Client: g.Client, Connections: g.Connections})
}

// Tools returns what to paste for each tool, for those who reach a server at an origin; empty: where it says itself
// that it is. It reports whether that is one.
func Tools(entrances []door.Entrance, origin, namespace string, access bool) (list doors.Tools, ok bool) {
	if origin == "" {
		origin = advertised(entrances)
	} else if !isOrigin(origin) {
		return list, false
	}
	list.Items = []doors.Tool{}
	for _, e := range entrances {
		place := door.Place{Origin: origin, Namespace: namespace, Access: access, Own: e.At(origin)}
		for _, t := range e.Kind.Tools {
			list.Items = append(list.Items,
				doors.Tool{ID: t.ID, Name: t.Name, What: t.What, Door: e.Kind.Name, On: e.On, Text: t.Text(place)})
		}
	}
	return list, true
}

// advertised returns the URL of the port that doors share. A server inside a test does not know it.
func advertised(entrances []door.Entrance) string {
	for _, e := range entrances {
		if e.URL != "" {
			return e.URL
		}
	}
	return v1.DefaultServer
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && text == u.Scheme+"://"+u.Host
}
