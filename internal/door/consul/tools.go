package consul

import (
	"cmp"

	"github.com/leasehold/leasehold/internal/door"
)

var tools = []door.Tool{{ID: "consul", Name: "Consul clients",
	What: "Sessions, locks, semaphores and keys of consul lock, consul/api, Terraform's consul backend and Patroni.",
	Text: func(p door.Place) string {
		return door.Lines(
			door.If(p.Own == "", "# The server needs --consul-listen, such as 127.0.0.1:8500."),
			"export CONSUL_HTTP_ADDR="+scheme(p)+cmp.Or(p.Own, "127.0.0.1:8500"),
			door.If(p.Access, "export CONSUL_HTTP_TOKEN=lh_…"),
			"consul lock my/job ./job.sh")
	}}}

func scheme(p door.Place) string {
	if p.Secure() {
		return "https://"
	}
	return "http://"
}
