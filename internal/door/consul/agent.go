package consul

import (
	"net"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Clients ask about the agent, its node and the leader before they come to the point. There is one node, which is all
// servers together: whichever of them answers, it is the same.

// consulVersion is the version of Consul whose answers these are: some clients choose by it what to ask.
const consulVersion = "1.22.7"

const (
	nodeID     = "6c656173-6568-6f6c-6400-000000000001"
	serverPort = 8300
	serfPort   = 8301
)

type object = map[string]any

// address is where the client found the server.
func (c *call) address() string {
	host := c.r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// agentSelf tells what the agent is. Patroni looks for the least TTL of sessions.
func (c *call) agentSelf() error {
	config := object{
		"Datacenter": c.door.config.Datacenter, "PrimaryDatacenter": c.door.config.Datacenter, "NodeName": nodeName,
		"NodeID": nodeID, "Revision": c.door.backend.Version().Commit, "Server": true, "Version": consulVersion,
		"SessionTTLMin": minTTL,
	}
	return c.send(object{"Config": config, "Member": c.member(), "Meta": object{}, "Stats": object{}})
}

// member is the one member of the cluster, as its gossip would tell.
func (c *call) member() object {
	return object{
		"Name": nodeName, "Addr": c.address(), "Port": serfPort, "Status": 1, "Tags": object{
			"dc": c.door.config.Datacenter, "id": nodeID, "role": "consul", "build": consulVersion, "vsn": "2",
		},
		"ProtocolMin": 1, "ProtocolMax": 5, "ProtocolCur": 2, "DelegateMin": 2, "DelegateMax": 5, "DelegateCur": 4,
	}
}

func (c *call) agentMembers() error { return c.send([]object{c.member()}) }

// agentServices and agentChecks list what was registered, of which nothing is kept.
func (c *call) agentServices() error { return c.send(object{}) }

func (c *call) agentVersion() error {
	return c.send(object{"SHA": c.door.backend.Version().Commit, "BuildDate": "1970-01-01T00:00:00Z",
		"HumanVersion": consulVersion, "FIPS": ""})
}

// register takes a service or a check that a client registers for itself, and its signs of life. Nothing comes of it:
// there is no catalog, and sessions do not depend on checks.
func (c *call) register() error {
	c.sendBytes(http.StatusOK, nil)
	return nil
}

// leader tells where the leader is, if there is one.
func (c *call) leader() error {
	if err := c.door.backend.Ready(c.ctx); err != nil {
		return c.send("")
	}
	return c.send(c.serverAddress())
}

func (c *call) serverAddress() string { return net.JoinHostPort(c.address(), "8300") }

func (c *call) peers() error { return c.send([]string{c.serverAddress()}) }

// sendIndexed answers with what never changes. The index is that of the moment, and a client that waits is kept for
// as long as it asks to be.
func (c *call) sendIndexed(value any) error {
	seen, stay, err := c.readWait()
	if err != nil {
		return err
	}
	var now leasehold.Revision
	if err := c.look(func(v core.View) { now = v.History(c.namespace()).Revision }); err != nil {
		return err
	}
	index := indexOf(now)
	if seen != 0 {
		leave, err := c.stay()
		if err != nil {
			return err
		}
		defer leave()
		index = seen
		if !c.door.backend.Pause(c.ctx, stay) && c.r.Context().Err() != nil {
			return c.r.Context().Err()
		}
	}
	c.setMeta(index)
	return c.send(value)
}

// node is the one node, in the words of the catalog.
func (c *call) node() object {
	return object{
		"ID": nodeID, "Node": nodeName, "Address": c.address(), "Datacenter": c.door.config.Datacenter,
		"TaggedAddresses": object{"lan": c.address(), "wan": c.address()}, "Meta": object{},
		"CreateIndex": 1, "ModifyIndex": 1,
	}
}

// service is the one service: Consul itself, which is what its clients reach.
func (c *call) service() object {
	return object{
		"ID": "consul", "Service": "consul", "Tags": []string{}, "Address": "", "Meta": object{}, "Port": serverPort,
		"Weights": object{"Passing": 1, "Warning": 1}, "EnableTagOverride": false, "CreateIndex": 1, "ModifyIndex": 1,
	}
}

// check is the one check.
func (c *call) check() object {
	return object{
		"Node": nodeName, "CheckID": aliveCheck, "Name": "Serf Health Status", "Status": "passing", "Notes": "",
		"Output": "Agent alive and reachable", "ServiceID": "", "ServiceName": "", "ServiceTags": []string{},
		"Type": "", "Definition": object{}, "CreateIndex": 1, "ModifyIndex": 1,
	}
}

func (c *call) catalogDatacenters() error { return c.send([]string{c.door.config.Datacenter}) }

func (c *call) catalogNodes() error { return c.sendIndexed([]object{c.node()}) }

func (c *call) catalogServices() error { return c.sendIndexed(object{"consul": []string{}}) }

func (c *call) catalogService() error {
	if c.name != "consul" {
		return c.sendIndexed([]object{})
	}
	found := c.node()
	for key, value := range c.service() {
		if key != "ID" && key != "Service" && key != "CreateIndex" && key != "ModifyIndex" {
			found["Service"+key] = value
		}
	}
	found["ServiceID"], found["ServiceName"] = "consul", "consul"
	return c.sendIndexed([]object{found})
}

func (c *call) catalogNode() error {
	if c.name != nodeName {
		return c.sendIndexed(nil)
	}
	return c.sendIndexed(object{"Node": c.node(), "Services": object{"consul": c.service()}})
}

// health lists the checks of a node, of a service or in a state.
func (c *call) health() error {
	list := []object{}
	if c.name == nodeName || c.name == "passing" || c.name == "any" {
		list = append(list, c.check())
	}
	return c.sendIndexed(list)
}

func (c *call) healthService() error {
	list := []object{}
	if c.name == "consul" {
		list = append(list, object{"Node": c.node(), "Service": c.service(), "Checks": []object{c.check()}})
	}
	return c.sendIndexed(list)
}
