package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTableAgreesWithAList compares a table with a list of units.
func TestTableAgreesWithAList(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	table, all := NewTable(), map[string]*Unit{}
	for step := range 2000 {
		host := fmt.Sprint("h", chance.IntN(3))
		var units []*Unit
		for i := range chance.IntN(6) {
			u := &Unit{Pool: "gpu", Host: host, Name: fmt.Sprint(host, "-", (step+i)%9), Removed: chance.IntN(3) == 0}
			if chance.IntN(2) == 0 {
				u.Lease = "l"
			}
			units = append(units, u)
			if all[u.Name] = u; u.Removed && u.Lease == "" {
				delete(all, u.Name)
			}
		}
		before, frozen := table.Len(), table.Copy()
		table.Update(units...)
		if frozen.Len() != before {
			t.Fatal("a copy has changed")
		}
		size, names := Size{}, []string{"nobody"}
		for name, u := range all {
			names = append(names, name)
			size.Names += len(name)
			if u.Removed {
				size.Removed++
			} else {
				size.Units++
			}
			if table.Get("gpu", name) != u {
				t.Fatalf("unit %s is %v", name, table.Get("gpu", name))
			}
		}
		slices.Sort(names)
		found := 0
		table.Named("gpu", names, func(u *Unit) bool {
			found++
			return all[u.Name] == u
		})
		if table.Size("gpu") != size || table.Len() != len(all) || found != len(all) {
			t.Fatalf("the table has %d units, %+v, and %d are found: want %d, %+v", table.Len(), table.Size("gpu"), found, len(all), size)
		}
	}
}

// TestManyUnitsAreSetAtOnce: the list of a host is copied once for all of them.
func TestManyUnitsAreSetAtOnce(t *testing.T) {
	table := NewTable()
	var units []*Unit
	for i := range 1024 {
		units = append(units, &Unit{Pool: "gpu", Host: "h", Name: fmt.Sprintf("u%04d", i)})
	}
	table.Set(units...)
	if n := testing.AllocsPerRun(1, func() { table.Set(units...) }); n > 20 {
		t.Errorf("to set %d units of a host allocates %v times", len(units), n)
	}
}
