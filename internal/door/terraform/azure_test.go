package terraform

import (
	"crypto/md5"
	"encoding/base64"
	"slices"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// States of the azurerm backend are blobs, among others that are none.
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
	b.ask("GET", "/azurerm/prod/box", "").expect(400)
	b.ask("GET", "/terraform/azurerm:prod/box/demo.tfstate", "").expect(400)
	b.ask("GET", "/azurerm/prod/box/none?info=true", "").expect(404)
}

const demo = "/azurerm/prod/box/demo.tfstate"

var demoAt = azureblob.Place{Account: "prod", Container: "box", Blob: "demo.tfstate"}

// newBox returns a bench with a container, and in it a state of serial 5 as the azurerm backend leaves it.
func newBox(t *testing.T) *bench {
	b := newBench(t)
	put := func(path, value string) {
		b.do(&core.PutRecord{Namespace: "default", Path: path, Value: value, Keep: 20})
	}
	put("azure/prod/box", `{"created":1}`)
	put(demoAt.BytesPath(), state(5, "L", ""))
	old := azureblob.Properties{Created: 7, Modified: 7, ETag: "old", Size: 3, Type: "text/plain", Blocks: 2, Metadata: map[string]string{"team": "web"}}
	put(demoAt.PropertiesPath(), old.Encode())
	put(demoAt.Of(azureblob.RootLists), "[]")
	put(demoAt.Part(azureblob.RootBlocks)+"YQ", "block")
	return b
}

func (b *bench) blob() (i azureblob.Item, bytes *leasehold.Record, parts int) {
	b.t.Helper()
	if err := b.engine.Read(b.t.Context(), func(v core.View) {
		i = azureblob.Look(v, "default", demoAt.PropertiesPath())
		bytes, _ = v.Record("default", demoAt.BytesPath(), 0)
		for _, path := range []string{demoAt.Of(azureblob.RootLists), demoAt.Part(azureblob.RootBlocks) + "YQ"} {
			if r, _ := v.Record("default", path, 0); r != nil {
				parts++
			}
		}
	}); err != nil {
		b.t.Fatal(err)
	}
	return i, bytes, parts
}

// A write does what that of the backend does: bytes and properties change together, and the rest of the
// blob stays.
func TestWriteBlob(t *testing.T) {
	b := newBox(t)
	b.ask("LOCK", demo, info("one")).expect(200)
	sent := state(6, "L", "")
	for range 2 { // the second is a retry, and changes nothing
		b.ask("POST", demo+"?ID=one", sent).expect(200)
	}
	i, bytes, parts := b.blob()
	sum := md5.Sum([]byte(sent))
	switch {
	case bytes.Value != sent || bytes.Version != 2 || bytes.Token == 0:
		t.Errorf("the bytes are %+v", bytes)
	case i.Size != int64(len(sent)) || i.MD5 != base64.StdEncoding.EncodeToString(sum[:]) || i.Type != "application/json":
		t.Errorf("the properties are %+v", i.Properties)
	case i.Created != 7 || i.ETag == "old" || i.Modified == 7 || i.Metadata["team"] != "web" || i.Blocks != 0 || parts != 0:
		t.Errorf("the properties are %+v, with %d blocks", i.Properties, parts)
	}
	b.ask("UNLOCK", demo, info("one")).expect(200)
	b.ask("POST", demo+"?ID=one", sent).expect(200) // its answer was lost
	b.ask("POST", demo+"?ID=one", state(7, "L", "")).expect(409, "that lock has ended")
	var versions tfstate.Page[tfstate.Version]
	read(b.ask("GET", demo+"?versions=true", "").expect(200), &versions)
	if len(versions.Items) != 2 || versions.Items[0].Holder != "ann@ci-42" {
		t.Errorf("the versions are %+v", versions.Items)
	}
}

// A blob that does not exist yet, or is empty, becomes a state.
func TestWriteNewBlob(t *testing.T) {
	b := newBox(t)
	b.do(&core.PutRecord{Namespace: "default", Path: "azure/prod/box/empty", Value: ""})
	for _, blob := range []string{"none", "empty"} {
		at := azureblob.Place{Account: "prod", Container: "box", Blob: blob}
		b.ask("LOCK", "/azurerm/prod/box/"+blob, info(blob)).expect(200)
		b.ask("POST", "/azurerm/prod/box/"+blob+"?ID="+blob, state(1, "L", "")).expect(200)
		var i azureblob.Item
		if err := b.engine.Read(t.Context(), func(v core.View) { i = azureblob.Look(v, "default", at.PropertiesPath()) }); err != nil {
			t.Fatal(err)
		}
		if !i.Found || i.Created == 0 || i.ETag == "" || i.Size == 0 {
			t.Errorf("%s: %+v", blob, i)
		}
	}
}

// Bytes that another program wrote, without the properties, are written again: Azure's clients could not
// read them.
func TestWriteMendsBlob(t *testing.T) {
	b := newBox(t)
	b.ask("LOCK", demo, info("one")).expect(200)
	b.ask("POST", demo+"?ID=one", state(5, "L", "")).expect(200)
	if i, _, _ := b.blob(); i.Type != "application/json" {
		t.Errorf("the properties are %+v", i.Properties)
	}
}

func TestBlobWritesRefused(t *testing.T) {
	b := newBox(t)
	untouched := func() {
		t.Helper()
		if i, bytes, parts := b.blob(); i.ETag != "old" || bytes.Version != 1 || parts != 2 {
			t.Errorf("it was written: %+v", i)
		}
	}
	b.ask("POST", demo, state(6, "L", "")).expect(400, "under its lock alone")
	b.ask("POST", demo+"?ID=one", state(6, "L", "")).expect(409, "not locked with one")
	b.ask("LOCK", demo, info("one")).expect(200)
	b.ask("LOCK", demo, info("two")).expect(423)
	b.ask("POST", demo+"?ID=two", state(6, "L", "")).expect(423)
	b.ask("POST", demo+"?ID=one", state(4, "L", "")).expect(409, "has serial 5")
	b.ask("POST", demo+"?ID=one", state(6, "M", "")).expect(409, "force it")
	b.ask("POST", demo+"?ID=one", "no state").expect(400)
	b.ask("POST", demo+"?ID=one&allow-lineage=1h", `{"reason":"x"}`).expect(409, "needs no permit")
	b.ask("DELETE", demo+"?ID=one", "").expect(409, "terraform workspace delete")
	b.do(&core.Break{Namespace: "default", ID: b.status("azurerm:prod/box/demo.tfstate").Holders[0].ID, By: "ops", Reason: "hangs"})
	b.ask("POST", demo+"?ID=one", state(6, "L", "")).expect(409, "that lock has ended")
	untouched()
	b.ask("LOCK", "/azurerm/prod/no-box/demo", info("one")).expect(404, "leasehold azure container create prod no-box")
	b.ask("LOCK", "/azurerm/prod/No_Box/demo", info("one")).expect(400, "names that Azure allows")

	// A container that is deleted meanwhile takes the state with it.
	b.ask("LOCK", demo, info("three")).expect(200)
	b.do(&core.PutRecord{Namespace: "default", Path: "azure/prod/box", Value: `{"created":1,"deleting":true}`})
	b.ask("POST", demo+"?ID=three", state(6, "L", "")).expect(404, "no container")
	untouched()
}

// A forced write says so in the journal, and one after a break keeps for the late holder who broke its lock.
func TestForcedBlobWrite(t *testing.T) {
	b := newBox(t)
	b.do(&core.Acquire{Namespace: "default", Resource: demoAt.Resource(), ID: "azure:1", Foreign: "aaaaaaaa-1111-4111-8111-111111111111", Holder: "ann"})
	b.do(&core.Break{Namespace: "default", ID: "azure:1", By: "ops", Reason: "hangs"})
	b.ask("LOCK", demo, info("one")).expect(200)
	for range 2 {
		b.ask("POST", demo+"?ID=one&force=true", state(4, "M", "")).expect(200)
	}
	i, bytes, _ := b.blob()
	if len(i.Ends) != 1 || i.Ends[0].By != "ops" || i.Ends[0].Why != "hangs" || bytes.Version != 2 {
		t.Errorf("the properties are %+v", i.Properties)
	}
	if got := b.status("azurerm:prod/box/demo.tfstate").Holders[0]; got.Reason != "forced, another lineage: apply" || got.Holder != "ann@ci-42" {
		t.Errorf("the lease is %+v", got)
	}
	b.ask("UNLOCK", demo, info("one")).expect(200)
}
