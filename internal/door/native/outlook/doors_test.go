package outlook

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/api/v1/doors"
	"github.com/leasehold/leasehold/internal/door"
)

// A client that comes to both ports of a door is one client.
func TestDoorWithTwoPorts(t *testing.T) {
	list := Doors([]door.Entrance{{Kind: door.Kind{Name: "etcd"}, On: true}}, []door.Guest{
		{Port: "clients", Door: "etcd", Client: "etcdctl", Connections: 2}, {Port: "clients", Door: "native", Client: "curl", Connections: 1},
		{Port: "etcd", Door: "etcd", Client: "etcdctl", Connections: 3}, {Port: "etcd", Door: "etcd", Client: "jetcd", Connections: 1},
	})
	want := []doors.DoorClient{{Client: "etcdctl", Connections: 5}, {Client: "jetcd", Connections: 1}}
	if got := list.Items[0]; got.Connections != 6 || !slices.Equal(got.Clients, want) {
		t.Errorf("the door has %+v", got)
	}
}
