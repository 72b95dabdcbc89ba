package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// apply does what terraform apply does: it locks a state, reads it, writes the next version and unlocks it.
func apply(ctx context.Context, a *actor) {
	name := a.one("network", "cluster", "dns", "shop/prod", "shop/staging")
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", a.Uint32(), a.Uint64()>>16)
	lock, _ := json.Marshal(map[string]string{"ID": id, "Operation": "OperationTypeApply", "Who": a.name,
		"Version": "1.15.8", "Created": time.Now().UTC().Format(time.RFC3339)})
	path := "/terraform/" + name
	if !a.send(ctx, "LOCK", path, nil, lock) {
		a.pause(ctx, a.between(3*time.Second, 8*time.Second)) // somebody else has it: Terraform asks again
		return
	}
	a.pause(ctx, a.hurry(a.between(8*time.Second, 35*time.Second)))
	atEnd, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	a.send(atEnd, "POST", path, url.Values{"ID": {id}}, a.state(atEnd, name))
	a.send(atEnd, "UNLOCK", path, nil, lock)
	a.pause(ctx, a.between(3*time.Second, 15*time.Second))
}

// state returns the next version of a state.
func (a *actor) state(ctx context.Context, name string) []byte {
	state := struct {
		Version   int              `json:"version"`
		Terraform string           `json:"terraform_version"`
		Serial    int              `json:"serial"`
		Lineage   string           `json:"lineage"`
		Outputs   map[string]any   `json:"outputs"`
		Resources []map[string]any `json:"resources"`
	}{Version: 4, Terraform: "1.15.8", Lineage: "demo-" + name, Outputs: map[string]any{}}
	if answer, err := a.api.Door(ctx, v1.DoorRequest{Method: http.MethodGet, Path: "/terraform/" + name}); err == nil {
		_ = json.NewDecoder(answer.Body).Decode(&state) // the first version has none before it
		answer.Body.Close()
	}
	state.Serial++
	state.Resources = []map[string]any{{"mode": "managed", "type": "null_resource", "name": "web",
		"provider": `provider["registry.terraform.io/hashicorp/null"]`, "instances": []map[string]any{{
			"schema_version": 0, "attributes": map[string]any{"id": fmt.Sprint(a.IntN(1 << 20)),
				"triggers": map[string]string{"replicas": fmt.Sprint(2 + a.IntN(6))}}}}}}
	text, _ := json.Marshal(state)
	return text
}

// send sends a request to the door of Terraform, and reports whether it was granted.
func (a *actor) send(ctx context.Context, method, path string, query url.Values, body []byte) bool {
	answer, err := a.api.Door(ctx, v1.DoorRequest{Method: method, Path: path, Query: query, Body: bytes.Clone(body)})
	if err != nil {
		return false
	}
	answer.Body.Close()
	return true
}
