package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
)

func TestOriginsAreBounded(t *testing.T) {
	if o, err := OriginOf(t.Context()); err != nil || o != (leasehold.Origin{}) {
		t.Errorf("of nobody: %+v, %v", o, err)
	}
	largest := leasehold.Origin{
		Actor: strings.Repeat("a", leasehold.MaxName), Address: strings.Repeat("b", leasehold.MaxAddress), Door: strings.Repeat("c", leasehold.MaxDoor),
	}
	// It belongs to what is done after the caller left, too.
	if o, err := OriginOf(context.WithoutCancel(WithOrigin(t.Context(), largest))); err != nil || o != largest {
		t.Errorf("the largest: %+v, %v", o, err)
	}
	for field, o := range map[string]leasehold.Origin{
		"actor": {Actor: largest.Actor + "a"}, "address": {Address: largest.Address + "b"}, "door": {Door: largest.Door + "c"},
	} {
		_, err := OriginOf(WithOrigin(t.Context(), o))
		if !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "the "+field+" of the request has") {
			t.Errorf("%s: %v", field, err)
		}
	}
}
