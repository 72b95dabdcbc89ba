package consul

import (
	"errors"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// The settings of this door.
const (
	listenSetting     = "consul-listen"
	namespaceSetting  = "consul-namespace"
	datacenterSetting = "consul-datacenter"
	exactSetting      = "consul-exact-ttl"
)

// Kind is this door in the table of a server.
var Kind = door.Kind{Name: doorName, What: "Consul: sessions, locks, KV", Tools: tools, Settings: []door.Setting{
	{Name: listenSetting, Check: door.CheckAddress,
		Help: "address for clients of Consul, such as 127.0.0.1:8500, with the certificates of --listen; empty: none"},
	{Name: namespaceSetting, Default: leasehold.DefaultNamespace, Check: checkNamespace,
		Help: "namespace in which clients of Consul keep their keys and sessions"},
	{Name: datacenterSetting, Default: defaultDatacenter, Check: checkDatacenter,
		Help: "name of the datacenter that clients of Consul see"},
	{Name: exactSetting, Default: "false", Switch: true,
		Help: "end sessions of Consul at their TTL, and not at twice their TTL as Consul does"},
}, Open: func(b *door.Backend, s door.Settings) (door.Door, error) {
	address := s[listenSetting]
	if address == "" {
		return door.Door{}, nil
	}
	d := New(b, Config{Namespace: s[namespaceSetting], Datacenter: s[datacenterSetting],
		Exact: s[exactSetting] == "true"})
	return door.Door{Port: d.Port(address)}, nil
}}

// Config is what a Door can be told. The zero value is good for tests.
type Config struct {
	Namespace  string // that keeps everything; empty: the default one
	Datacenter string // as clients see it; empty: dc1
	Exact      bool   // sessions end at their TTL, and not at twice their TTL
}

const defaultDatacenter = "dc1"

func checkNamespace(name string) error { return door.CheckName("namespace", name, leasehold.MaxName) }

func checkDatacenter(name string) error {
	const most = 64
	ok := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if name == "" || len(name) > most || strings.IndexFunc(name, func(r rune) bool { return !ok(r) }) >= 0 {
		return errors.New("write 1 to 64 letters, digits, hyphens and underscores, such as dc1")
	}
	return nil
}
