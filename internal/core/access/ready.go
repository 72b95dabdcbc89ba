package access

import "slices"

// The roles that are always there. They cannot be changed; one of another name can.
var ready = []*Role{
	{Name: "viewer", Any: seeing},
	{Name: "member", Any: seeing | taking, Own: keeping},
	{Name: "operator", Any: seeing | taking | keeping | operating},
	{Name: "admin", Any: All},
}

const (
	seeing    = 1<<Read | 1<<List | 1<<Watch | 1<<RecordRead | 1<<Monitor
	taking    = 1<<Acquire | 1<<Share | 1<<Ask | 1<<RecordWrite
	keeping   = 1<<Renew | 1<<Release | 1<<Change | 1<<Break | 1<<Move
	operating = 1<<Acknowledge | 1<<Define | 1<<Audit | 1<<Foreign
)

// Ready returns the roles that are always there, from the one that may least.
func Ready() []*Role { return ready }

func readyRole(name string) (*Role, bool) {
	i := slices.IndexFunc(ready, func(r *Role) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return ready[i], true
}

// IsReady reports whether a role is always there.
func IsReady(name string) bool {
	_, ok := readyRole(name)
	return ok
}
