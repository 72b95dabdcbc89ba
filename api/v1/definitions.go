package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
)

// A DefinitionRequest sets the definition of a resource, or of all under a prefix: what it leaves
// out has its default afterwards. A DefinitionChange leaves the rest as it is.
type DefinitionRequest struct {
	Capacity    int      `json:"capacity,omitempty"`
	Units       []string `json:"units,omitempty"`
	DefaultTTL  Duration `json:"default_ttl,omitzero"`
	LargestTTL  Duration `json:"largest_ttl,omitzero"`
	HoldLimit   Duration `json:"hold_limit,omitzero"`
	Grace       Duration `json:"grace,omitzero"`
	Expected    Duration `json:"expected,omitzero"`
	Unclean     string   `json:"unclean,omitempty"`     // allow, warn or acknowledge
	Limits      []string `json:"limits,omitempty"`      // of the units of a pool: holder=2, label:team=8, prefix:ci/=4
	Idle        Duration `json:"idle,omitzero"`         // without use of its units, until a holder is asked about it
	IdleRelease Duration `json:"idle_release,omitzero"` // after that, until the lease is broken
	Backfill    bool     `json:"backfill,omitempty"`    // lends units that are kept for somebody to short leases
	By          string   `json:"by,omitempty"`
	Reason      string   `json:"reason,omitempty"`

	// OnReservation is what happens to leases in the way of a reservation when it begins: wait, warn or end.
	OnReservation string `json:"on_reservation,omitempty"`
	// Replace permits to drop units, and to leave fewer slots than are taken or waited for.
	Replace bool `json:"replace,omitempty"`
	// IfRevision refuses the request unless the definition has this revision.
	IfRevision uint64 `json:"if_revision,omitempty"`
}

// A DefinitionChange changes the fields of a definition that are given, and keeps the others.
// Servers merge it, so that changes of different fields do not undo each other.
type DefinitionChange struct {
	Capacity      Optional[int]      `json:"capacity,omitzero"` // replaces units
	Units         Optional[[]string] `json:"units,omitzero"`    // replaces capacity
	DefaultTTL    Optional[Duration] `json:"default_ttl,omitzero"`
	LargestTTL    Optional[Duration] `json:"largest_ttl,omitzero"`
	HoldLimit     Optional[Duration] `json:"hold_limit,omitzero"`
	Grace         Optional[Duration] `json:"grace,omitzero"`
	Expected      Optional[Duration] `json:"expected,omitzero"`
	Unclean       Optional[string]   `json:"unclean,omitzero"` // allow, warn or acknowledge
	Limits        Optional[[]string] `json:"limits,omitzero"`
	Idle          Optional[Duration] `json:"idle,omitzero"`
	IdleRelease   Optional[Duration] `json:"idle_release,omitzero"`
	Backfill      Optional[bool]     `json:"backfill,omitzero"`
	OnReservation Optional[string]   `json:"on_reservation,omitzero"` // wait, warn or end
	By            string             `json:"by,omitempty"`
	Reason        string             `json:"reason,omitempty"`
	Replace       bool               `json:"replace,omitempty"`     // as in DefinitionRequest
	IfRevision    uint64             `json:"if_revision,omitempty"` // as in DefinitionRequest
}

// An Optional is a field of a change. One that is not Given stays as it is; the zero value, which
// is null in JSON, sets it back to its default.
type Optional[T any] struct {
	Value T
	Given bool
}

// To returns a field that is given.
func To[T any](value T) Optional[T] { return Optional[T]{value, true} }

// IsZero reports whether the field is left out.
func (o Optional[T]) IsZero() bool { return !o.Given }

// MarshalJSON writes the value, or null for the zero value.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if reflect.ValueOf(&o.Value).Elem().IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON reads a value, or null.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	*o = Optional[T]{Given: true}
	err := json.Unmarshal(b, &o.Value)
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err
	}
	word := kind.Type.String()
	switch kind.Type.Kind() {
	case reflect.Slice:
		word = "list"
	case reflect.Int:
		word = "number"
	}
	return fmt.Errorf("it is a JSON %s: it has to be a %s", kind.Value, word)
}

// A Definition is what was set for a resource, or for all under a prefix.
type Definition struct {
	Namespace     string    `json:"namespace"`
	Path          string    `json:"path"`               // a prefix ends with a slash
	Capacity      int       `json:"capacity,omitempty"` // 0: the first holder decides
	Units         []string  `json:"units,omitempty"`
	DefaultTTL    *Duration `json:"default_ttl,omitempty"`
	LargestTTL    *Duration `json:"largest_ttl,omitempty"`
	HoldLimit     *Duration `json:"hold_limit,omitempty"`
	Grace         *Duration `json:"grace,omitempty"`
	Expected      *Duration `json:"expected,omitempty"`
	Unclean       string    `json:"unclean"`
	Limits        []string  `json:"limits,omitempty"`
	Idle          *Duration `json:"idle,omitempty"`
	IdleRelease   *Duration `json:"idle_release,omitempty"`
	Backfill      bool      `json:"backfill,omitempty"`
	OnReservation string    `json:"on_reservation,omitempty"` // absent: wait
	Revision      uint64    `json:"revision"`
}

// A DefinitionQuery says which definitions to list.
type DefinitionQuery struct {
	Prefix string
	After  string // Next of the previous page
	Limit  int    // of one page; 0: the server's default
}

// Define sets the whole definition of a resource, or of all under a prefix, which ends with a slash.
func (c *Caller) Define(ctx context.Context, path string, r DefinitionRequest, options ...Option) (Definition, error) {
	return send[Definition](ctx, c, request{method: "PUT", path: definitionPath(path), body: r, options: options})
}

// ChangeDefinition changes some fields of a definition, or begins one with them.
func (c *Caller) ChangeDefinition(
	ctx context.Context, path string, r DefinitionChange, options ...Option,
) (Definition, error) {
	return send[Definition](ctx, c, request{method: "PATCH", path: definitionPath(path), body: r, options: options})
}

// Undefine removes a definition.
func (c *Caller) Undefine(ctx context.Context, path string, options ...Option) error {
	_, err := send[Nothing](ctx, c, request{method: "DELETE", path: definitionPath(path), options: options})
	return err
}

// Definition returns the definition that applies to a resource; its Path says where it was set.
func (c *Caller) Definition(ctx context.Context, path string) (Definition, error) {
	return send[Definition](ctx, c, request{method: "GET", path: definitionPath(path)})
}

// Definitions returns one page of definitions.
func (c *Caller) Definitions(ctx context.Context, q DefinitionQuery) (List[Definition], error) {
	query := url.Values{}
	setText(query, "prefix", q.Prefix)
	setText(query, "after", q.After)
	setNumber(query, "limit", q.Limit)
	return send[List[Definition]](ctx, c, request{method: "GET", path: "/v1/definitions", query: query})
}

// definitionPath returns the URL path of a definition, with the name as one segment: a prefix
// ends with a slash, which some proxies remove.
func definitionPath(path string) string { return "/v1/definitions/" + escape(path) }
