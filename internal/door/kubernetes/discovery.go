package kubernetes

import (
	"encoding/json"
	"net/http"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// Discovery: what there is, for clients that find it out. It is the same for everybody and for ever.

// A document is an answer that never changes, in JSON alone.
type document string

func (document) onlyJSON() {}

func (document) kind() (apiVersion, kind string) { return "", "" }

// Marshal returns nothing: documents have no form in protobuf.
func (document) Marshal() []byte { return nil }

// JSON returns the document.
func (d document) JSON() ([]byte, error) { return []byte(d), nil }

// texts is a value of JSON that is written by hand.
type texts = map[string]any

// documentOf returns a value of JSON as a document.
func documentOf(value any) document {
	text, _ := json.Marshal(value)
	return document(text)
}

var (
	leaseVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	eventVerbs = []string{"create", "list"}

	groupVersion = texts{"groupVersion": object.APIVersion, "version": "v1"}
	group        = texts{"name": object.Group, "versions": []any{groupVersion}, "preferredVersion": groupVersion}
)

// documents are what discovery answers, by what the path names.
var documents = map[int]document{
	ofCore: documentOf(texts{"kind": "APIVersions", "versions": []string{"v1"},
		"serverAddressByClientCIDRs": []any{}}),
	ofCoreV1: documentOf(texts{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
		texts{"name": "events", "singularName": "event", "namespaced": true, "kind": "Event", "verbs": eventVerbs,
			"shortNames": []string{"ev"}},
	}}),
	ofGroups: documentOf(texts{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{group}}),
	ofGroup: documentOf(texts{"kind": "APIGroup", "apiVersion": "v1", "name": object.Group,
		"versions": []any{groupVersion}, "preferredVersion": groupVersion}),
	ofVersion: documentOf(texts{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": object.APIVersion,
		"resources": []any{
			texts{"name": object.Resource, "singularName": "lease", "namespaced": true, "kind": object.Kind,
				"verbs": leaseVerbs},
		}}),
}

// aggregated are the same in one piece for each of the two roots.
var aggregated = map[int]document{
	ofCore:   allOf("", "v1", "events", "event", "Event", eventVerbs, []string{"ev"}),
	ofGroups: allOf(object.Group, "v1", object.Resource, "lease", object.Kind, leaseVerbs, nil),
}

// allOf returns what aggregated discovery says of a group with one resource.
func allOf(group, version, resource, singular, kind string, verbs, short []string) document {
	named := texts{"resource": resource, "singularResource": singular, "scope": "Namespaced", "verbs": verbs,
		"responseKind": texts{"group": group, "version": version, "kind": kind}}
	if short != nil {
		named["shortNames"] = short
	}
	meta := texts{"creationTimestamp": nil}
	if group != "" {
		meta["name"] = group
	}
	return documentOf(texts{"kind": asAggregated, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": texts{},
		"items": []any{texts{"metadata": meta, "versions": []any{
			texts{"version": version, "freshness": "Current", "resources": []any{named}},
		}}}})
}

// discover answers what there is.
func (c *call) discover() error {
	d := documents[c.on]
	if c.form.as == asAggregated {
		d = aggregated[c.on]
	}
	c.send(http.StatusOK, d)
	return nil
}

// versionFields are what /version says to clients of Kubernetes: which of its versions this door is like.
var versionFields = map[string]string{
	"major": "1", "minor": "37", "gitVersion": "v1.37.0+leasehold", "platform": "leasehold",
}

// readNamespace shows a namespace. Each is there: it comes with what is put in it. When a Lease is not found, kubectl
// asks whether its namespace is, and would say nothing of the Lease.
func (c *call) readNamespace() error {
	c.send(http.StatusOK, documentOf(texts{"kind": "Namespace", "apiVersion": "v1", "metadata": texts{"name": c.space},
		"status": texts{"phase": "Active"}}))
	return nil
}
