package reservation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestPlanAgreesWithALookAtEverything compares the plan with one that looks at all reservations, minute by minute.
func TestPlanAgreesWithALookAtEverything(t *testing.T) {
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 0))
		table := NewTable()
		var all []*Reservation
		at := func(most int) Moment { return Moment(time.Duration(1+chance.IntN(most)) * time.Hour) }
		for i := range 200 {
			r := &Reservation{ID: fmt.Sprint("r", i), Resource: fmt.Sprint("x", chance.IntN(3)), Slots: uint32(chance.IntN(4)), From: at(400)}
			r.Until = r.From + at(100)
			r.Begun = chance.IntN(2) == 0
			if chance.IntN(8) == 0 {
				r.Over = r.From
			}
			table.Set(r)
			all = append(all, r)
			if chance.IntN(4) == 0 {
				gone := chance.IntN(len(all))
				table.Delete(all[gone].ID)
				all = slices.Delete(all, gone, gone+1)
			}
		}
		for range 50 {
			resource, from := fmt.Sprint("x", chance.IntN(3)), at(400)
			until := from + at(60)
			want, peak, exclusive := []string{}, 0, false
			for _, r := range all {
				if r.Over == 0 && r.Resource == resource && r.From < until && r.Until > from {
					want = append(want, r.ID)
					exclusive = exclusive || r.Slots == 0
				}
			}
			for m := from; m < until; m += Moment(time.Hour) {
				now := 0
				for _, r := range all {
					if r.Over == 0 && r.Resource == resource && r.From <= m && m < r.Until {
						now += int(r.Slots)
					}
				}
				peak = max(peak, now)
			}
			sum := Kept{}
			table.Keeping(resource, func(r *Reservation) bool {
				if sum.Slots += int(r.Slots); r.Slots == 0 {
					sum.Whole++
				}
				return true
			})
			if kept := table.Kept(resource); kept != sum {
				t.Fatalf("seed %d: %+v is kept of %s, and counted as %+v", seed, sum, resource, kept)
			}
			next := table.Next(resource, from, until, "r0")
			for _, r := range all {
				if r.Over == 0 && r.Resource == resource && r.ID != "r0" && r.From > from && r.From < until &&
					(next == nil || r.From < next.From || r.From == next.From && r.ID < next.ID) {
					t.Fatalf("seed %d: %s begins before %v does", seed, r.ID, next)
				}
			}
			if next != nil && (next.Resource != resource || next.From <= from || next.From >= until || next.ID == "r0") {
				t.Fatalf("seed %d: %v is not the next of %s after %d", seed, next, resource, from)
			}
			got := []string{}
			table.Overlapping(resource, from, until, func(r *Reservation) bool {
				got = append(got, r.ID)
				return true
			})
			slices.Sort(got)
			slices.Sort(want)
			slots, whole, _, looked := table.Peak(resource, from, until)
			if !slices.Equal(got, want) || slots != peak || whole != exclusive || looked != len(want) {
				t.Fatalf("seed %d: %v overlap, %d slots, all %v; want %v, %d, %v", seed, got, slots, whole, want, peak, exclusive)
			}
		}
	}
}

// TestAThousandReservationsAreNotLookedAt: what is planned on other days costs nothing.
func TestAThousandReservationsAreNotLookedAt(t *testing.T) {
	table := NewTable()
	for i := range 1000 {
		from := Moment(time.Duration(i) * 4 * time.Hour)
		table.Set(&Reservation{ID: fmt.Sprintf("r%04d", i), Resource: "gpu", Slots: 1, From: from, Until: from.Add(4 * time.Hour)})
	}
	from := Moment(100 * 24 * time.Hour)
	if slots, _, _, looked := table.Peak("gpu", from, from.Add(8*time.Hour)); slots != 1 || looked != 2 {
		t.Errorf("%d slots are reserved at once, and %d reservations were looked at: want 1 and 2", slots, looked)
	}
	free := table.Free("gpu", from, time.Hour, 3, func(from, until Moment) bool {
		slots, _, _, _ := table.Peak("gpu", from, until)
		return slots == 0
	})
	if len(free) != 0 {
		t.Errorf("free from %v, and all is taken for two months", free)
	}
	if copied := table.Copy(); table.Of("gpu") != 1000 || copied.Len() != 1000 {
		t.Errorf("%d reservations are counted", table.Of("gpu"))
	}
}
