package consul

import (
	"encoding/json"
	"testing"
)

func TestAgentAndCatalog(t *testing.T) {
	b := newBench(t, Config{Datacenter: "home"})
	var self struct {
		Config struct {
			NodeName, Datacenter string
			SessionTTLMin        int64
		}
		Member struct{ Name string }
	}
	if err := json.Unmarshal([]byte(b.ask("GET /v1/agent/self", "").expect(200).body), &self); err != nil {
		t.Fatal(err)
	}
	if self.Config.NodeName != nodeName || self.Config.Datacenter != "home" || self.Config.SessionTTLMin != 10e9 || self.Member.Name != nodeName {
		t.Errorf("the agent says of itself %+v", self)
	}
	b.ask("GET /v1/status/leader", "").is(`"example.com:8300"`)
	b.ask("GET /v1/status/peers", "").is(`["example.com:8300"]`)
	b.ask("GET /v1/catalog/datacenters", "").is(`["home"]`)
	b.ask("GET /v1/catalog/services", "").is(`{"consul":[]}`)
	b.ask("GET /v1/catalog/service/web", "").is(`[]`)
	b.ask("GET /v1/catalog/node/other", "").is(`null`)
	b.ask("GET /v1/health/service/web?passing", "").is(`[]`)
	b.ask("GET /v1/health/state/critical", "").is(`[]`)
	for _, what := range []string{"catalog/nodes", "catalog/service/consul", "catalog/node/leasehold", "health/node/leasehold",
		"health/service/consul", "health/state/any", "agent/members"} {
		b.ask("GET /v1/"+what, "").expect(200, `"leasehold"`)
	}
	for _, what := range []string{"service/register", "service/deregister/web", "check/register", "check/pass/service:web"} {
		b.ask("PUT /v1/agent/"+what, `{"Name":"web"}`).is("")
	}
	b.ask("GET /v1/agent/services", "").is(`{}`)
	b.ask("GET /v1/kv/a?dc=home", "").expect(404)
	b.ask("GET /v1/agent/self?pretty", "").expect(200, "{\n    \"Config\": {")
}
