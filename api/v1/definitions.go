package v1

import (
	"context"
	"net/url"
)

// A DefinitionRequest sets the definition of a resource, or of all under a prefix.
type DefinitionRequest struct {
	Capacity   int      `json:"capacity,omitempty"`
	Units      []string `json:"units,omitempty"`
	DefaultTTL Duration `json:"default_ttl,omitzero"`
	LargestTTL Duration `json:"largest_ttl,omitzero"`
	HoldLimit  Duration `json:"hold_limit,omitzero"`
	Grace      Duration `json:"grace,omitzero"`
	Expected   Duration `json:"expected,omitzero"`
	Unclean    string   `json:"unclean,omitempty"` // allow, warn or acknowledge
	By         string   `json:"by,omitempty"`
	Reason     string   `json:"reason,omitempty"`
}

// A Definition is what was set for a resource, or for all under a prefix.
type Definition struct {
	Namespace  string    `json:"namespace"`
	Path       string    `json:"path"`               // a prefix ends with a slash
	Capacity   int       `json:"capacity,omitempty"` // 0: the first holder decides
	Units      []string  `json:"units,omitempty"`
	DefaultTTL *Duration `json:"default_ttl,omitempty"`
	LargestTTL *Duration `json:"largest_ttl,omitempty"`
	HoldLimit  *Duration `json:"hold_limit,omitempty"`
	Grace      *Duration `json:"grace,omitempty"`
	Expected   *Duration `json:"expected,omitempty"`
	Unclean    string    `json:"unclean"`
	Revision   uint64    `json:"revision"`
}

// A DefinitionQuery says which definitions to list.
type DefinitionQuery struct {
	Prefix string
	After  string // Next of the previous page
	Limit  int    // of one page; 0: the server's default
}

// Define sets the definition of a resource, or of all under a prefix, which ends with a slash.
func (c *Caller) Define(ctx context.Context, path string, r DefinitionRequest, options ...Option) (Definition, error) {
	return send[Definition](ctx, c, request{method: "PUT", path: definitionPath(path), body: r, options: options})
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
