package kubernetes

import (
	"testing"

	"k8s.io/client-go/discovery"
)

// kubectl version, and clients that ask what there is: at once, or step by step as older ones do.
func TestDiscovery(t *testing.T) {
	s := startServer(t)
	client, err := discovery.NewDiscoveryClientForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil || version.Major != "1" || version.GitVersion == "" {
		t.Errorf("the version is %+v, %v", version, err)
	}
	for _, legacy := range []bool{false, true} {
		client.UseLegacyDiscovery = legacy
		_, lists, err := client.ServerGroupsAndResources()
		found := map[string]bool{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				found[list.GroupVersion+" "+r.Name+" "+r.Kind] = r.Namespaced && len(r.Verbs) > 0
			}
		}
		if err != nil || !found["coordination.k8s.io/v1 leases Lease"] || !found["v1 events Event"] || len(found) != 2 {
			t.Errorf("discovery (legacy: %v) finds %v, %v", legacy, found, err)
		}
	}
}
