package etcd

import (
	"cmp"

	"github.com/leasehold/leasehold/internal/door"
)

var tools = []door.Tool{{ID: "etcd", Name: "etcd clients",
	What: "Locks, elections, leases and keys of etcdctl, clientv3 and any other client of etcd v3.",
	Text: func(p door.Place) string {
		return door.Lines("export ETCDCTL_ENDPOINTS="+scheme(p)+cmp.Or(p.Own, p.Host()),
			door.If(p.Access, "export ETCDCTL_USER=token ETCDCTL_PASSWORD=lh_…"),
			"etcdctl lock my/job ./job.sh", "etcdctl elect my/leader me")
	}}}

func scheme(p door.Place) string {
	if p.Secure() {
		return "https://"
	}
	return "http://"
}
