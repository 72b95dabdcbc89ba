package command

import (
	"testing"

	"github.com/leasehold/leasehold"
)

// A request that is sent again may say otherwise who asks, why, how long it waits, and ids that a door made.
func TestSubjectIsWhatIsDone(t *testing.T) {
	base := func() *Acquire {
		return &Acquire{Namespace: "n", Resource: "r", ID: "a", Holder: "h", TTL: 1e9, Also: []Item{{Resource: "s", ID: "b"}}}
	}
	want := Subject(base())
	for name, c := range map[string]struct {
		change  func(*Acquire)
		another bool
	}{
		"id":       {func(c *Acquire) { c.ID, c.Also[0].ID = "c", "d" }, false},
		"labels":   {func(c *Acquire) { c.Labels = leasehold.Labels{{Key: "k", Value: "v"}} }, false},
		"reason":   {func(c *Acquire) { c.Reason = "why" }, false},
		"wait":     {func(c *Acquire) { c.Wait = 5e9 }, false},
		"party":    {func(c *Acquire) { c.Party = "p" }, false},
		"request":  {func(c *Acquire) { c.Request = Request{Key: "k"} }, false},
		"resource": {func(c *Acquire) { c.Resource = "q" }, true},
		"also":     {func(c *Acquire) { c.Also[0].Resource = "t" }, true},
		"slots":    {func(c *Acquire) { c.Slots = 1 }, true},
		"ttl":      {func(c *Acquire) { c.TTL++ }, true},
		"select":   {func(c *Acquire) { c.Select = &leasehold.Select{Where: "x"} }, true},
	} {
		changed := base()
		c.change(changed)
		if got := Subject(changed); (got != want) != c.another {
			t.Errorf("%s: %s, and %s before", name, got, want)
		}
	}
	put, other := &PutRecord{Path: "p", Value: "v", Link: &Link{ID: "a"}}, &PutRecord{Path: "p", Value: "v", Link: &Link{ID: "b"}}
	if Subject(put) == Subject(other) {
		t.Error("a put with another link is the same")
	}
}
