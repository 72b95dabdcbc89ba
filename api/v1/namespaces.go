package v1

import (
	"context"
	"iter"
	"net/url"
)

// A Namespace is one that exists: something has been done in it, and is still known.
type Namespace struct {
	Namespace string `json:"namespace"`
}

// A NamespaceQuery says which namespaces to list.
type NamespaceQuery struct {
	Prefix string // of their names
	After  string // the Next of a page
	Limit  int    // of one page; 0: the server's default
}

// Namespaces yields the namespaces of all pages, in the order of their names. It ends after the first error.
func (c *Caller) Namespaces(ctx context.Context, q NamespaceQuery) iter.Seq2[Namespace, error] {
	return pages(q.After, func(after string) (List[Namespace], error) {
		query := url.Values{}
		setText(query, "prefix", q.Prefix)
		setText(query, "after", after)
		setNumber(query, "limit", q.Limit)
		return send[List[Namespace]](ctx, c, request{method: "GET", path: "/v1/namespaces", query: query, global: true})
	})
}
