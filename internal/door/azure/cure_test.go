package azure

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

func (r reply) note() (info note) {
	r.Helper()
	value := r.get("x-ms-meta-terraformlockid")
	b, err := base64.StdEncoding.DecodeString(value)
	if err != nil || json.Unmarshal(b, &info) != nil {
		r.Fatalf("there is no note: %q", value)
	}
	return info
}

// The answer to the lease was lost, so that its holder never noted who it is.
func TestOrphanHasANote(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "{}", "x-ms-meta-kept", "1")
	b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(201)
	for _, method := range []string{"HEAD", "GET"} {
		got := b.ask(method, "/tfstate/demo", "")
		if info := got.expect(200).note(); info.ID != idA || !strings.HasPrefix(info.Who, "leasehold@") || info.Created == "" {
			t.Errorf("%s: %+v", method, info)
		}
		if got.get("x-ms-meta-kept") != "1" {
			t.Errorf("%s: other metadata is gone", method)
		}
	}
	// What force-unlock does then.
	b.ask("HEAD", "/tfstate/demo", "", "x-ms-lease-id", idA).expect(200)
	b.ask("PUT", "/tfstate/demo?comp=metadata", "", "x-ms-lease-id", idA, "x-ms-meta-kept", "1").expect(200)
	b.lease("/tfstate/demo", "release", "x-ms-lease-id", idA).expect(200)
	if got := b.ask("HEAD", "/tfstate/demo", ""); got.get("x-ms-meta-terraformlockid") != "" {
		t.Error("there is a note without a lease")
	}
}

// A note of the holder before says nothing about this one.
func TestStaleNoteIsReplaced(t *testing.T) {
	b := newBench(t)
	b.container("tfstate")
	b.blob("tfstate/demo", "{}")
	old, _ := json.Marshal(note{ID: idB, Who: "bob@ci", Operation: "OperationTypeApply"})
	b.ask("PUT", "/tfstate/demo?comp=metadata", "", "x-ms-meta-terraformlockid", base64.StdEncoding.EncodeToString(old)).expect(200)
	if got := b.ask("HEAD", "/tfstate/demo", "").note(); got.ID != idB {
		t.Errorf("what is not leased is shown as it is: %+v", got)
	}
	b.lease("/tfstate/demo", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA).expect(201)
	if got := b.ask("HEAD", "/tfstate/demo", "").note(); got.ID != idA || got.Who == "bob@ci" {
		t.Errorf("got %+v", got)
	}
	own, _ := json.Marshal(note{ID: idA, Who: "ann@ci", Operation: "OperationTypeApply"})
	b.ask("PUT", "/tfstate/demo?comp=metadata", "", "x-ms-lease-id", idA, "x-ms-meta-terraformlockid", base64.StdEncoding.EncodeToString(own)).expect(200)
	if got := b.ask("HEAD", "/tfstate/demo", "").note(); got.ID != idA || got.Who != "ann@ci" || !strings.Contains(got.Info, "held for") {
		t.Errorf("a contender is told %+v", got)
	}
	if got := b.ask("HEAD", "/tfstate/demo", "", "x-ms-lease-id", idA); got.get("x-ms-meta-terraformlockid") != base64.StdEncoding.EncodeToString(own) {
		t.Error("the holder does not get back what it wrote")
	}
}
