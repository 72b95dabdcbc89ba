package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/leasehold/leasehold/internal/door"
)

// An asking is the arguments of a tool.
type asking interface {
	serve(*call) (any, error)
}

// An operation is one thing that can be asked. Each has a row in the table of who may do what, in the tests of
// package node.
type operation struct {
	name     string // in metrics, and of the tool
	noted    string // as the journal calls it, in the words of all doors
	writes   bool
	optional bool // there is no such tool unless the operator wants it
	tool     *sdk.Tool
	ask      func() asking
}

// operations is the whole door. The first is what the protocol itself asks: to begin, to ping, to list the tools.
var operations = []operation{
	{name: "protocol", noted: "resource"},
	{name: "lease_acquire", noted: "acquire", writes: true, ask: func() asking { return new(acquiring) },
		tool: toolOf(sdk.ToolAnnotations{Title: "Take leases", IdempotentHint: true, DestructiveHint: new(false)},
			"lease_acquire", acquireText, acquireSchema, "resources", "reason")},
	{name: "lease_check", noted: "renew", ask: func() asking { return new(checking) },
		tool: toolOf(sdk.ToolAnnotations{Title: "Check and renew", IdempotentHint: true, DestructiveHint: new(false)},
			"lease_check", checkText, checkSchema)},
	{name: "lease_release", noted: "release", writes: true, ask: func() asking { return new(releasing) },
		tool: toolOf(sdk.ToolAnnotations{Title: "Give leases back", IdempotentHint: true, DestructiveHint: new(false)},
			"lease_release", releaseText, releaseSchema, "ids")},
	{name: "lease_list", noted: "resources", ask: func() asking { return new(listing) },
		tool: toolOf(sdk.ToolAnnotations{Title: "See who holds what", ReadOnlyHint: true, IdempotentHint: true},
			"lease_list", listText, listSchema)},
	{name: "lease_ask", noted: "ask", writes: true, ask: func() asking { return new(messaging) },
		tool: toolOf(sdk.ToolAnnotations{Title: "Ask the holder", DestructiveHint: new(false)},
			"lease_ask", askText, askSchema, "resource", "message")},
	{name: "lease_break", noted: "break", writes: true, optional: true, ask: func() asking { return new(breaking) },
		tool: toolOf(sdk.ToolAnnotations{Title: "End another's lease", DestructiveHint: new(true)},
			"lease_break", breakText, breakSchema, "resource", "reason")},
}

// toolOf returns a tool as clients see it.
func toolOf(hints sdk.ToolAnnotations, name, text, properties string, required ...string) *sdk.Tool {
	schema := map[string]any{"type": "object", "properties": json.RawMessage(properties), "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	hints.OpenWorldHint = new(false)
	return &sdk.Tool{Name: name, Description: text, Annotations: &hints, InputSchema: schema}
}

// decode reads the arguments of a tool. What is unknown is an error: an agent that misspells a limit must not get
// more than it wanted.
func decode(arguments json.RawMessage, into asking) error {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(arguments))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			return door.Invalid("the arguments are more than one JSON object")
		}
		return nil
	}
	return door.Invalid("the arguments cannot be read: %s; allowed are: %s",
		strings.TrimPrefix(err.Error(), "json: "), strings.Join(fieldsOf(into), ", "))
}

// fieldsOf returns the names of a tool's arguments.
func fieldsOf(ask asking) (names []string) {
	for f := range reflect.TypeOf(ask).Elem().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}
