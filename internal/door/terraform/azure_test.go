package terraform

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// States of the azurerm backend are blobs, among others that are none; they can be read here, and
// nothing else.
func TestStatesOfAzurerm(t *testing.T) {
	b := newBench(t)
	put := func(path, value string) {
		b.do(&core.PutRecord{Namespace: "default", Path: path, Value: value, Keep: 20})
	}
	put("azure/prod/box", `{"created":1}`) // a container
	put("azure/prod/box/photo", "\xff\xd8")
	put("azure/prod/box/demo.tfstate", "") // as the backend begins
	put("azure/prod/box/demo.tfstate", state(1, "L", ""))
	put("azure/prod/box/demo.tfstate", state(2, "L", ""))
	put("azure/prod/box/new.tfstate", "")
	put("azure/prod/box/unused.tfstate", "")
	for _, blob := range []string{"photo", "new.tfstate"} {
		b.do(&core.Acquire{Namespace: "default", Resource: "azure/prod/box/" + blob, ID: blob, Holder: "ann@laptop", Reason: "apply"})
	}
	b.do(&core.Acquire{Namespace: "default", Resource: "azure/prod/box", ID: "box", Holder: "ann"})
	b.ask("POST", "/terraform/web", state(1, "L", "")).expect(200)

	var page tfstate.Page[tfstate.State]
	read(b.ask("GET", "/azurerm/?prefix=prod/", "").expect(200), &page)
	names := []string{}
	for _, s := range page.Items {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"azurerm:prod/box/demo.tfstate", "azurerm:prod/box/new.tfstate"}) {
		t.Fatalf("the list is %v", names)
	}
	if lock := page.Items[1].Lock; lock == nil || lock.Who != "ann@laptop" || lock.Operation != "apply" {
		t.Errorf("the lock is %+v", lock)
	}
	var info tfstate.State
	if read(b.ask("GET", "/azurerm/prod/box/demo.tfstate?info=true", "").expect(200), &info); info.Serial != 2 || info.Versions != 2 {
		t.Errorf("the state is %+v", info)
	}
	var versions tfstate.Page[tfstate.Version]
	read(b.ask("GET", "/azurerm/prod/box/demo.tfstate?versions=true", "").expect(200), &versions)
	if len(versions.Items) != 2 || versions.Items[1].Serial != 1 {
		t.Errorf("versions are %+v", versions.Items)
	}
	for _, method := range []string{"POST", "LOCK", "UNLOCK", "DELETE"} {
		if got := b.ask(method, "/azurerm/prod/box/demo.tfstate", state(3, "L", "")); got.status == 200 || !strings.Contains(got.body, "written by Terraform alone") {
			t.Errorf("%s: %d %s", method, got.status, got.body)
		}
	}
	b.ask("GET", "/azurerm/prod/box", "").expect(400)
	b.ask("GET", "/terraform/azurerm:prod/box/demo.tfstate", "").expect(400)
	b.ask("GET", "/azurerm/prod/box/none?info=true", "").expect(404)
}
