package main

import (
	"slices"
	"strconv"
	"strings"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// printLeases writes leases in the format that was asked for.
func (a *app) printLeases(leases []v1.Lease) error {
	switch a.output {
	case formatJSON:
		return printMany(a, leases)
	case formatName:
		return a.printIDs(leases)
	}
	columns := []column{{name: "RESOURCE"}, {name: "ID"}, {name: "HOLDER", flexible: true}, {name: "TOKEN"}, {name: "REMAINING"}}
	units := slices.ContainsFunc(leases, func(l v1.Lease) bool { return len(l.Units) > 0 })
	if units {
		columns = append(columns, column{name: "UNITS"})
	}
	if a.output == formatWide {
		columns = append(columns, column{name: "STATE", paint: paintState}, column{name: "SESSION"}, column{name: "SINCE"},
			column{name: "EXPIRES"}, column{name: "LABELS", flexible: true}, column{name: "REASON", flexible: true})
	}
	rows := make([][]string, 0, len(leases))
	for _, l := range leases {
		row := []string{l.Resource, l.ID, l.Holder, strconv.FormatUint(l.Token, 10), left(l)}
		if units {
			row = append(row, strings.Join(l.Units, ","))
		}
		if a.output == formatWide {
			row = append(row, l.State, l.Session, a.when(l.Acquired), a.when(l.Expires), labelList(l.Labels), l.Reason)
		}
		rows = append(rows, row)
	}
	return a.printTable(columns, rows)
}

// printByResource prints a lease that was named by its resource, whose name is
// therefore that.
func (a *app) printByResource(lease v1.Lease) error {
	if a.output == formatName {
		return a.printLine(lease.Resource)
	}
	return a.printLeases([]v1.Lease{lease})
}

func (a *app) printIDs(leases []v1.Lease) error {
	for _, l := range leases {
		if err := a.printLine(l.ID); err != nil {
			return err
		}
	}
	return nil
}

// printMany writes one thing as an object, and any other number as a list.
func printMany[T any](a *app, things []T) error {
	switch len(things) {
	case 0:
		return a.printJSON([]T{})
	case 1:
		return a.printJSON(things[0])
	}
	return a.printJSON(things)
}

// each does something for every id, also after one failed, and shows what worked.
func each[T any](ids []string, do func(id string) (T, error), show func([]T) error) error {
	var done []T
	var failed several
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
