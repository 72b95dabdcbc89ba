package v1_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func TestCallerLargeValues(t *testing.T) {
	c, ctx := call(t, "blue & green"), t.Context()
	value := bytes.Repeat([]byte("0123456789"), 100000)
	first := must[v1.Record](t)(c.PutRecord(ctx, v1.PutRequest{Path: "state/a b", Body: iotest.HalfReader(bytes.NewReader(value)), Keep: 20}))
	if first.Large == nil || first.Large.Size != int64(len(value)) {
		t.Fatalf("the record is %+v", first)
	}
	must[v1.Record](t)(c.PutRecord(ctx, v1.PutRequest{Path: "state/a b", Value: []byte("short")}))
	page := must[v1.VersionPage](t)(c.Versions(ctx, "state/a b", "", 1))
	if len(page.Items) != 1 || !page.Items[0].Current || page.Next == "" || page.Keep != 20 {
		t.Fatalf("the newest version is %+v", page)
	}
	page = must[v1.VersionPage](t)(c.Versions(ctx, "state/a b", page.Next, 0))
	if len(page.Items) != 1 || page.Items[0].SHA256 != first.Large.SHA256 || page.Next != "" {
		t.Fatalf("the one before is %+v", page)
	}
	if r := must[v1.Record](t)(c.RecordAt(ctx, "state/a b", first.Mod)); *r.Large != *first.Large {
		t.Errorf("it was %+v", r)
	}
	r := must[io.ReadCloser](t)(c.OpenRecord(ctx, "state/a b", first.Mod))
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, value) {
		t.Errorf("%d bytes were read: %v", len(got), err)
	}
	back := must[v1.Record](t)(c.PutRecord(ctx, v1.PutRequest{Path: "state/a b", Version: first.Mod, Keep: leasehold.KeepNone}))
	if back.Version != 3 || back.Large == nil {
		t.Errorf("rolled back it is %+v", back)
	}
	if _, err := c.OpenRecord(ctx, "state/a b", first.Mod); !errors.Is(err, leasehold.ErrNotFound) {
		t.Errorf("a version that is not kept: %v", err)
	}
}
