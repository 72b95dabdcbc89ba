package azure

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// noted is the header that the azurerm backend writes under its lease.
func noted(n note) []string {
	b, _ := json.Marshal(n)
	return []string{"x-ms-lease-id", n.ID, "x-ms-meta-terraformlockid", base64.StdEncoding.EncodeToString(b)}
}

func (b *bench) status(blob string) (s leasehold.Status) {
	b.Helper()
	if err := b.engine.Read(b.Context(), func(v core.View) {
		s = v.Status(leasehold.DefaultNamespace, "azure/"+testAccount+"/"+blob, 0)
	}); err != nil {
		b.Fatal(err)
	}
	return s
}

// lockedBy takes the lease of a blob and notes who did, as the azurerm backend does.
func (b *bench) lockedBy(blob, id, who string) {
	b.Helper()
	b.lease("/"+blob, "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", id).expect(201)
	b.ask("PUT", "/"+blob+"?comp=metadata", "", noted(note{ID: id, Who: who, Operation: "OperationTypeApply",
		Version: "1.11.4"})...).expect(200)
}

func TestNoteNamesTheHolder(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "{}")
	b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(201)
	before := b.status("tfstate/demo").Holders[0]
	if !strings.HasPrefix(before.Holder, testAccount+"@") {
		t.Fatalf("before the note it is %q", before.Holder)
	}
	for range 2 { // the second is a retry, and changes nothing
		b.ask("PUT", "/tfstate/demo?comp=metadata", "", noted(note{ID: idA, Who: "ann@laptop\x07",
			Operation: "OperationTypeApply", Version: "1.11.4"})...).expect(200)
	}
	after := b.status("tfstate/demo").Holders[0]
	if after.Holder != "ann@laptop" || after.Reason != "apply" || after.Token != before.Token || after.ID != before.ID {
		t.Errorf("after the note: %+v", after)
	}
	want := []leasehold.Label{{Key: labelClient, Value: before.Holder}, {Key: "azure/lease-id", Value: idA},
		{Key: labelVersion, Value: "1.11.4"}}
	for i, l := range want {
		if i >= len(after.Labels) || after.Labels[i] != l {
			t.Errorf("labels are %v, without %v", after.Labels, l)
		}
	}
	// A contender is told, and so is one who takes the lease by Azure's own means.
	if got := b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1"); !strings.Contains(got.body, "held by ann@laptop (apply) since") {
		t.Error(got.expect(409, "LeaseAlreadyPresent").body)
	}
	// The backend takes the note away before it releases: the holder stays known.
	b.ask("PUT", "/tfstate/demo?comp=metadata", "", "x-ms-lease-id", idA).expect(200)
	b.lease("/tfstate/demo", "release", "x-ms-lease-id", idA).expect(200)
	if last := b.status("tfstate/demo").Last; last == nil || last.Holder != "ann@laptop" {
		t.Errorf("the last holder is %+v", last)
	}
}

// What Terraform writes under its lock keeps its former versions, with who wrote them.
func TestStatesKeepVersions(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "")
	b.blob("tfstate/other", "one")
	b.blob("tfstate/other", "two")
	b.lockedBy("tfstate/demo", idA, "ann@laptop")
	mine := noted(note{ID: idA, Who: "ann@laptop", Operation: "OperationTypeApply", Version: "1.11.4"})
	for _, body := range []string{"one", "two"} {
		b.blob("tfstate/demo", body, mine...)
	}
	versions := func(blob string) (list []leasehold.Version) {
		if err := b.engine.Read(b.Context(), func(v core.View) {
			list, _ = v.Versions(leasehold.DefaultNamespace, "azure/"+testAccount+"/tfstate/"+blob, 0, 100)
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := versions("demo")
	if len(list) != 3 || list[0].Value != "two" || list[0].Holder != "ann@laptop" || list[1].Holder != "ann@laptop" {
		t.Errorf("versions of the state: %+v", list)
	}
	if list := versions("other"); len(list) != 1 {
		t.Errorf("a blob that is no state has %d versions", len(list))
	}
}

// A note that is not the holder's own says nothing about the holder.
func TestOthersNotesNameNobody(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "{}")
	b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(201)
	before := b.status("tfstate/demo").Holders[0]
	for name, headers := range map[string][]string{
		"of another lease": {"x-ms-lease-id", idA, "x-ms-meta-terraformlockid", noted(note{ID: idB, Who: "bob"})[3]},
		"that is no note":  {"x-ms-lease-id", idA, "x-ms-meta-terraformlockid", "bm90ZQ=="},
		"that is nothing":  {"x-ms-lease-id", idA, "x-ms-meta-terraformlockid", "%"},
	} {
		b.ask("PUT", "/tfstate/demo?comp=metadata", "", headers...).expect(200)
		if now := b.status("tfstate/demo").Holders[0]; now.Holder != before.Holder {
			t.Errorf("a note %s made the holder %q", name, now.Holder)
		}
	}
	b.ask("PUT", "/tfstate/demo?comp=metadata", "", "x-ms-meta-terraformlockid", noted(note{ID: idA, Who: "eve"})[3]).
		expect(412, "LeaseIdMissing")
	if now := b.status("tfstate/demo").Holders[0]; now.Holder != before.Holder {
		t.Errorf("somebody without the lease made the holder %q", now.Holder)
	}
}

// A writer whose lease was broken learns who did it and why, whatever has happened since.
func TestLateWriterLearnsWhoBrokeIt(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "{}")
	b.lockedBy("tfstate/demo", idA, "ann@laptop")
	lease := b.status("tfstate/demo").Holders[0]
	if _, err := b.engine.Do(b.Context(), &core.Break{Namespace: leasehold.DefaultNamespace, ID: lease.ID, By: "bob",
		Reason: "the deploy hangs"}); err != nil {
		t.Fatal(err)
	}
	late := func(moment, code string) reply {
		t.Helper()
		got := b.ask("PUT", "/tfstate/demo", "late", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA).expect(412, code)
		if !strings.Contains(got.body, "but the lease was broken by bob at ") || !strings.Contains(got.body, ": the deploy hangs") {
			t.Errorf("%s: %s", moment, got.body)
		}
		return got
	}
	late("at once", "LeaseLost")
	b.lockedBy("tfstate/demo", idB, "cyd@ci")
	if got := late("after a take-over", "LeaseIdMismatchWithBlobOperation"); !strings.Contains(got.body, "it is held by cyd@ci (apply) since") {
		t.Errorf("who holds it now is not said: %s", got.body)
	}
	if got := b.lease("/tfstate/demo", "release", "x-ms-lease-id", idA).expect(409, "LeaseIdMismatchWithLeaseOperation"); !strings.Contains(got.body, "broken by bob") {
		t.Errorf("a late release: %s", got.body)
	}
	b.ask("PUT", "/tfstate/demo", "of cyd", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idB).expect(201)
	b.lease("/tfstate/demo", "release", "x-ms-lease-id", idB).expect(200)
	late("after the other's release", "LeaseNotPresentWithBlobOperation")
	b.blob("tfstate/demo", "of nobody")
	b.lockedBy("tfstate/demo", idC, "dan@ci")
	b.lease("/tfstate/demo", "release", "x-ms-lease-id", idC).expect(200)
	late("after a third", "LeaseNotPresentWithBlobOperation")
	// Somebody who never held it is told nothing of this.
	if got := b.ask("PUT", "/tfstate/demo", "x", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", "dddddddd-4444-4444-8444-444444444444").
		expect(412, "LeaseNotPresentWithBlobOperation"); strings.Contains(got.body, "bob") {
		t.Error(got.body)
	}
}

// Whatever is asked of a blob, a missing container is named as what is missing.
func TestMissingContainerIsSaid(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		method, query string
		headers       []string
	}{
		{"GET", "", nil}, {"DELETE", "", nil}, {"PUT", "", []string{"x-ms-blob-type", "BlockBlob"}},
		{"GET", "?comp=metadata", nil}, {"PUT", "?comp=metadata", nil}, {"PUT", "?comp=properties", nil},
		{"PUT", "?comp=snapshot", nil}, {"PUT", "?comp=block&blockid=YQ==", nil}, {"GET", "?comp=blocklist", nil},
		{"PUT", "?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1"}},
		{"PUT", "?comp=lease", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA}},
		{"PUT", "?comp=lease", []string{"x-ms-lease-action", "release", "x-ms-lease-id", idA}},
		{"PUT", "?comp=lease", []string{"x-ms-lease-action", "change", "x-ms-lease-id", idA, "x-ms-proposed-lease-id", idB}},
		{"PUT", "?comp=lease", []string{"x-ms-lease-action", "break"}},
	} {
		b.ask(c.method, "/nowhere/demo"+c.query, "", c.headers...).expect(404, "ContainerNotFound")
	}
	b.ask("PUT", "/nowhere/demo?comp=blocklist", "<BlockList></BlockList>").expect(404, "ContainerNotFound")
	b.container("nowhere")
	b.lease("/nowhere/demo", "acquire", "x-ms-lease-duration", "-1").expect(404, "BlobNotFound")
}

// However long the reasons of breaks are, and however many characters they take as JSON, the blob can still be
// written and leased.
func TestBreaksLeaveRoom(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "{}")
	long := strings.Repeat("&", leasehold.MaxName)
	for range 12 {
		b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(201)
		id := b.status("tfstate/demo").Holders[0].ID
		if _, err := b.engine.Do(t.Context(), &core.Break{Namespace: leasehold.DefaultNamespace, ID: id, By: long, Reason: long}); err != nil {
			t.Fatal(err)
		}
	}
	b.blob("tfstate/demo", "{ }")
	b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idB).expect(201)
	late := b.ask("PUT", "/tfstate/demo", "late", "x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA)
	if !strings.Contains(late.body, "the lease was broken by") {
		t.Error(late.body)
	}
}
