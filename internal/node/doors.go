package node

import (
	"github.com/leasehold/leasehold/internal/config"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/azure"
	"github.com/leasehold/leasehold/internal/door/console"
	"github.com/leasehold/leasehold/internal/door/consul"
	"github.com/leasehold/leasehold/internal/door/etcd"
	"github.com/leasehold/leasehold/internal/door/kubernetes"
	"github.com/leasehold/leasehold/internal/door/mcp"
	"github.com/leasehold/leasehold/internal/door/native"
	"github.com/leasehold/leasehold/internal/door/terraform"
)

// doors is what a server speaks. A new door is one folder and one line here.
var doors = []door.Kind{
	native.Kind,     // our own API, health and metrics: HTTP and JSON
	terraform.Kind,  // the http backend of Terraform and OpenTofu
	console.Kind,    // the web console
	azure.Kind,      // Azure Blob Storage, on a port of its own
	etcd.Kind,       // etcd v3: gRPC and JSON, also on a port of its own
	kubernetes.Kind, // Leases of Kubernetes
	consul.Kind,     // Consul's sessions, locks and keys, on a port of its own
	mcp.Kind,        // tools for agents, at /mcp
}

// Settings are what the doors of a server add to its settings.
func Settings() (all []config.Door) {
	for _, kind := range doors {
		var added config.Door
		for _, s := range kind.Settings {
			if s.Switch {
				added.Keys = append(added.Keys, config.DoorSwitch(s.Name, s.Default, s.Help))
				continue
			}
			added.Keys = append(added.Keys, config.DoorKey(s.Name, s.Default, s.Help, s.Check))
		}
		if kind.Check != nil {
			added.Check = func(values map[string]string) error { return kind.Check(values) }
		}
		all = append(all, added)
	}
	return all
}

// openDoors opens all of them.
func openDoors(b *door.Backend, c Config) (opened []door.Door, err error) {
	for _, kind := range doors {
		d, err := kind.Open(b, c.Doors)
		if err != nil {
			return nil, err
		}
		d.HTTP.Name = kind.Name
		if d.Port != nil {
			d.Port.HTTP.Name = kind.Name
		}
		opened = append(opened, d)
	}
	return opened, nil
}
