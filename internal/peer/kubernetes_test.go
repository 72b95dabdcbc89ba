//go:build linux

package peer

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestKubernetes(t *testing.T) {
	t.Parallel()
	k := StartKubernetes(t)
	client := k.Client()
	defer client.CloseIdleConnections()
	leases := k.URL() + "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a"}}`
	_, err := httpSend(client, http.MethodPost, leases, k.UserToken, lease)
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a user without permissions makes a lease: %v", err)
	}
	if _, err := httpSend(client, http.MethodPost, leases, k.AdminToken, lease); err != nil {
		t.Error(err)
	}
	k.Kill()
	k.Restart()
	answer, err := httpSend(client, http.MethodGet, leases+"/a", k.AdminToken, "")
	var found struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if err == nil {
		err = json.Unmarshal(answer, &found)
	}
	if err != nil || found.Metadata.UID == "" {
		t.Errorf("after a kill the lease is %s, %v", answer, err)
	}
}
