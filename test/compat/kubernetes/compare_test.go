//go:build linux

package kubernetes

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/internal/peer"
)

// A side is one of the servers that are compared.
type side struct {
	client *http.Client
	url    string
	token  string
	last   map[string]string // what the next request takes from the object that was answered
}

// A verdict is what clients look at in an answer.
type verdict struct {
	Status          int
	Reason, Message string
	Holder          string
}

func (s *side) ask(t testing.TB, method, path, contentType, body string) verdict {
	t.Helper()
	for name, value := range s.last {
		body = strings.ReplaceAll(body, name, value)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	response, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, Reason, Message string
		Metadata              struct{ UID, ResourceVersion string }
		Spec                  struct{ HolderIdentity string }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	if got.Kind == "Lease" {
		s.last = map[string]string{"UID": got.Metadata.UID, "VERSION": got.Metadata.ResourceVersion}
	}
	return verdict{response.StatusCode, got.Reason, got.Message, got.Spec.HolderIdentity}
}

// The same requests get the same answers as from a kube-apiserver.
func TestSameAsKubernetes(t *testing.T) {
	k := peer.StartKubernetes(t)
	theirs := &side{client: k.Client(), url: k.URL(), token: k.AdminToken}
	defer theirs.client.CloseIdleConnections()
	ours := &side{client: http.DefaultClient, url: startServer(t).url}
	const all, merge = "/apis/coordination.k8s.io/v1/namespaces/default/leases", "application/merge-patch+json"
	for _, r := range []struct {
		name, method, path, contentType, body string
		anyMessage                            bool
	}{
		{"absent", "GET", "/op", "", "", false},
		{"create", "POST", "", "application/json", `{"metadata":{"name":"op"},"spec":{"holderIdentity":"ann","leaseDurationSeconds":3600}}`, false},
		{"exists", "POST", "", "application/json", `{"metadata":{"name":"op"}}`, false},
		{"renew", "PUT", "/op", "application/json", `{"metadata":{"name":"op","uid":"UID","resourceVersion":"VERSION"},"spec":{"holderIdentity":"bob"}}`, false},
		{"no version", "PUT", "/op", "application/json", `{"metadata":{"name":"op"},"spec":{"holderIdentity":"eve"}}`, false},
		{"stale", "PUT", "/op", "application/json", `{"metadata":{"name":"op","resourceVersion":"1"},"spec":{"holderIdentity":"eve"}}`, false},
		{"other uid", "PUT", "/op", "application/json", `{"metadata":{"name":"op","uid":"u","resourceVersion":"VERSION"}}`, true},
		{"other name", "PUT", "/op", "application/json", `{"metadata":{"name":"other","resourceVersion":"VERSION"}}`, false},
		{"other namespace", "POST", "", "application/json", `{"metadata":{"name":"x","namespace":"other"}}`, false},
		{"bad duration", "POST", "", "application/json", `{"metadata":{"name":"x"},"spec":{"leaseDurationSeconds":0}}`, false},
		{"bad transitions", "POST", "", "application/json", `{"metadata":{"name":"x"},"spec":{"leaseTransitions":-1}}`, false},
		{"bad name", "POST", "", "application/json", `{"metadata":{"name":"X"}}`, false},
		{"no name", "POST", "", "application/json", `{"metadata":{}}`, false},
		{"merge patch", "PATCH", "/op", merge, `{"spec":{"holderIdentity":"eve"}}`, false},
		{"patch of nothing", "PATCH", "/none", merge, `{}`, false},
		{"bad patch", "PATCH", "/op", merge, `{"spec":{"leaseDurationSeconds":-1}}`, false},
		{"JSON patch", "PATCH", "/op", "application/json-patch+json", `[{"op":"replace","path":"/spec/holderIdentity","value":"ann"}]`, false},
		{"test that fails", "PATCH", "/op", "application/json-patch+json", `[{"op":"test","path":"/spec/holderIdentity","value":"x"}]`, true},
		{"strategic patch", "PATCH", "/op", "application/strategic-merge-patch+json", `{"spec":{"holderIdentity":"bob"}}`, false},
		{"apply makes", "PATCH", "/applied?fieldManager=f", "application/apply-patch+yaml",
			"apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: applied}\nspec: {holderIdentity: ann}\n", false},
		{"unknown field", "POST", "?fieldValidation=Strict", "application/json", `{"metadata":{"name":"x"},"spec":{"bogus":1}}`, false},
		{"wrong type", "POST", "", "application/json", `{"metadata":{"name":"x"},"spec":{"leaseDurationSeconds":"1"}}`, true},
		{"unknown type", "POST", "", "text/x", `{}`, true},
		{"delete by uid", "DELETE", "/op", "application/json", `{"preconditions":{"uid":"u"}}`, true},
		{"delete", "DELETE", "/op", "application/json", ``, false},
		{"delete again", "DELETE", "/op", "application/json", ``, false},
		{"put of nothing", "PUT", "/put", "application/json", `{"metadata":{"name":"put"}}`, false},
	} {
		want, got := theirs.ask(t, r.method, all+r.path, r.contentType, r.body), ours.ask(t, r.method, all+r.path, r.contentType, r.body)
		if r.anyMessage {
			want.Message, got.Message = "", ""
		}
		if got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", r.name, got, want)
		}
	}
	t.Run("kubectl", func(t *testing.T) {
		if status := theirs.ask(t, "POST", "/api/v1/namespaces", "application/json", `{"metadata":{"name":"team"}}`).Status; status != http.StatusCreated {
			t.Fatalf("the namespace cannot be made: %d", status)
		}
		typeEverything(t, newTerminal(t, &rest.Config{Host: k.URL(), BearerToken: k.AdminToken,
			TLSClientConfig: rest.TLSClientConfig{CAFile: k.CAFile()}}))
	})
}
