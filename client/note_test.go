package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/leasetest"
)

// A holder reports its progress in a note that readers see. A hold that has ended cannot.
func TestNote(t *testing.T) {
	server := leasetest.New()
	defer func() { _ = server.Close() }()
	c := server.Dial(t)
	ctx := context.Background()
	noteOf := func() string {
		r, err := server.Inside().Resource(ctx, "train", 0)
		if err != nil || len(r.Holders) != 1 {
			t.Fatalf("the resource is %+v: %v", r, err)
		}
		return r.Holders[0].Note
	}
	h, err := c.Acquire(ctx, "train")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Note(ctx, "epoch 3 of 10"); err != nil {
		t.Fatal(err)
	}
	if got := noteOf(); got != "epoch 3 of 10" {
		t.Errorf("the note is %q", got)
	}
	if err := h.Note(ctx, strings.Repeat("x", leasehold.MaxNote+1)); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("a note that is too long: %v", err)
	}
	if !h.Valid() {
		t.Error("a refused note costs the hold")
	}
	if err := h.Note(ctx, ""); err != nil || noteOf() != "" {
		t.Errorf("the note is still there: %v", err)
	}
	if err := h.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.Note(ctx, "done"); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("a note after the release: %v", err)
	}
}
