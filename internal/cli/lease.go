package cli

import (
	"slices"
	"strconv"
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// PrintLeases writes leases in the format that was asked for.
func (a *App) PrintLeases(leases []v1.Lease) error {
	switch a.Output {
	case FormatJSON:
		return PrintMany(a, leases)
	case FormatName:
		return a.printIDs(leases)
	}
	columns := []Column{{Name: "RESOURCE"}, {Name: "ID"}, {Name: "HOLDER", Flexible: true}, {Name: "TOKEN"},
		{Name: "REMAINING"}}
	units := slices.ContainsFunc(leases, func(l v1.Lease) bool { return len(l.Units) > 0 })
	if units {
		columns = append(columns, Column{Name: "UNITS"})
	}
	if a.Output == FormatWide {
		columns = append(columns, Column{Name: "STATE", Paint: PaintState}, Column{Name: "SESSION"},
			Column{Name: "SINCE"},
			Column{Name: "EXPIRES"}, Column{Name: "LABELS", Flexible: true}, Column{Name: "REASON", Flexible: true})
	}
	rows := make([][]string, 0, len(leases))
	for _, l := range leases {
		row := []string{l.Resource, l.ID, l.Holder, strconv.FormatUint(l.Token, 10), Left(l)}
		if units {
			row = append(row, strings.Join(l.Units, ","))
		}
		if a.Output == FormatWide {
			row = append(row, l.State, l.Session, a.When(l.Acquired), a.When(l.Expires), LabelList(l.Labels), l.Reason)
		}
		rows = append(rows, row)
	}
	return a.PrintTable(columns, rows)
}

// PrintByResource prints a lease that was named by its resource; with -o name it prints that name.
func (a *App) PrintByResource(lease v1.Lease) error {
	if a.Output == FormatName {
		return a.PrintLine(lease.Resource)
	}
	return a.PrintLeases([]v1.Lease{lease})
}

func (a *App) printIDs(leases []v1.Lease) error {
	for _, l := range leases {
		if err := a.PrintLine(l.ID); err != nil {
			return err
		}
	}
	return nil
}

// PrintMany prints one thing as an object, and any other number as a list: a script that names one
// id gets what the API returns for it.
func PrintMany[T any](a *App, things []T) error {
	switch len(things) {
	case 0:
		return a.PrintJSON([]T{})
	case 1:
		return a.PrintJSON(things[0])
	}
	return a.PrintJSON(things)
}

// Each does something for every id and shows what worked. It continues after an error: with ten
// leases to release, the ninth should not depend on the first.
func Each[T any](ids []string, do func(id string) (T, error), show func([]T) error) error {
	var done []T
	var failed Several
	for _, id := range ids {
		result, err := do(id)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, result)
	}
	if len(done) > 0 {
		if err := show(done); err != nil {
			failed = append(failed, err)
		}
	}
	if failed == nil {
		return nil
	}
	return failed
}
