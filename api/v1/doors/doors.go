// Package doors has the part of the API that is about what a server speaks, and with which tools it is reached.
package doors

import (
	"context"
	"net/url"

	v1 "github.com/leasehold/leasehold/api/v1"
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

// List returns what the server speaks, where, and who is connected to it.
func List(ctx context.Context, c *v1.Caller) (list Doors, err error) {
	err = c.Send(ctx, "GET", "/v1/cluster/doors", nil, nil, &list)
	return list, err
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

// ListTools returns what to paste to reach a server with each tool. The origin is where it is reached, such as
// https://leases.example:4653; empty: as the server says itself.
func ListTools(ctx context.Context, c *v1.Caller, origin string) (list Tools, err error) {
	query := url.Values{}
	if origin != "" {
		query.Set("origin", origin)
	}
	err = c.Send(ctx, "GET", "/v1/connect", query, nil, &list)
	return list, err
}
