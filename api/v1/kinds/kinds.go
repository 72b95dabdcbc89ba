// Package kinds has the part of the API that is about what was learned of kinds of leases: how long they take, and
// which TTL suits them. A kind is the label "kind" of a lease, or its label "command" and the holder's name without
// its number.
package kinds

import (
	"context"
	"net/url"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Query names one kind, as a lease with these labels and this holder would be of. The zero Query names none: all are
// shown.
type Query struct{ Kind, Command, Holder string }

// Kinds are those of one resource, by name.
type Kinds struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	Items     []Kind `json:"items"`
}

// A Kind is what was learned of one kind of leases.
type Kind struct {
	Name       string      `json:"name"`
	TTL        v1.Duration `json:"ttl"`             // of a lease that is renewed
	Unattended v1.Duration `json:"unattended"`      // the TTL of a lease that is not
	Usual      *v1.Usual   `json:"usual,omitempty"` // absent: too little is known
}

// Get shows the kinds of leases on a resource. If the query names one, that is the only one, be it known or not.
func Get(ctx context.Context, c *v1.Caller, path string, q Query) (all Kinds, err error) {
	query := url.Values{}
	for name, value := range map[string]string{"kind": q.Kind, "command": q.Command, "holder": q.Holder} {
		if value != "" {
			query.Set(name, value)
		}
	}
	err = c.Send(ctx, "GET", "/v1/kinds/"+url.PathEscape(path), query, nil, &all)
	return all, err
}
