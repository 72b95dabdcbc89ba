package v1

import (
	"context"
	"net/url"
)

// Doors are what one server speaks.
type Doors struct {
	Items []DoorStatus `json:"items"`
}

// A DoorStatus is one protocol of a server, and who uses it.
type DoorStatus struct {
	Name        string       `json:"name"`
	What        string       `json:"what"`                // it speaks, and to whom
	On          bool         `json:"on"`                  // it can be used
	Addresses   []string     `json:"addresses,omitempty"` // that it listens on
	Connections int          `json:"connections"`
	Clients     []DoorClient `json:"clients"`
}

// A DoorClient is a client program, by the name that it gives itself.
type DoorClient struct {
	Client      string `json:"client,omitempty"` // empty: it says none
	Connections int    `json:"connections"`
}

// Doors returns what the server speaks, where, and who is connected to it.
func (c *Caller) Doors(ctx context.Context) (Doors, error) {
	return send[Doors](ctx, c, request{method: "GET", path: "/v1/cluster/doors", global: true})
}

// Tools are the programs that a server can be reached with.
type Tools struct {
	Items []Tool `json:"items"`
}

// A Tool is a program, and what to paste for it.
type Tool struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	What string `json:"what"` // it is for, or does
	Door string `json:"door"` // that it uses
	On   bool   `json:"on"`   // the door can be used
	Text string `json:"text"` // to paste
}

// Tools returns what to paste to reach a server with each tool. The origin is where it is reached, such as
// https://leases.example:4653; empty: as the server says itself.
func (c *Caller) Tools(ctx context.Context, origin string) (Tools, error) {
	query := url.Values{}
	if origin != "" {
		query.Set("origin", origin)
	}
	return send[Tools](ctx, c, request{method: "GET", path: "/v1/connect", query: query})
}
