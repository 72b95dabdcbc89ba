package kubernetes

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// A documented answer has no form in protobuf.
type documented interface{ onlyJSON() }

// A table is a list as kubectl shows it.
type table struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   listMeta `json:"metadata"`
	Columns    []column `json:"columnDefinitions"`
	Rows       []row    `json:"rows"`

	include string // what goes along with each row
	now     time.Time
}

// A column says what is in the cells below it.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Format      string `json:"format"`
	Description string `json:"description"`
	Priority    int    `json:"priority"`
}

// A row is one object.
type row struct {
	Cells  []string `json:"cells"`
	Object any      `json:"object,omitempty"`
}

// columns are those that Kubernetes has for Leases.
var columns = []column{
	{"Name", "string", "name", "The name of the Lease, which is unique within its namespace.", 0},
	{"Holder", "string", "", "Who holds the Lease; empty: nobody.", 0},
	{"Age", "string", "", "How long ago the Lease was created.", 0},
}

// newTable returns a table without rows. Ages are as of now.
func newTable(include, version string) *table {
	return &table{Kind: asTable, APIVersion: metaVersion, Metadata: listMeta{ResourceVersion: version},
		Columns: columns, Rows: []row{}, include: include, now: time.Now()}
}

func (t *table) onlyJSON() {}

func (t *table) kind() (apiVersion, kind string) { return t.APIVersion, t.Kind }

// Marshal returns nothing: a table has no form in protobuf here.
func (t *table) Marshal() []byte { return nil }

// JSON returns the table in JSON.
func (t *table) JSON() ([]byte, error) { return json.Marshal(t) }

// add adds the row of an object.
func (t *table) add(l *object.Lease) {
	r := row{Cells: []string{l.Meta.Name, l.Spec.HolderName(), age(t.now, l.Meta.Created.Time)}}
	switch t.include {
	case "None":
	case "Object":
		text, _ := l.JSON()
		r.Object = json.RawMessage(text)
	default:
		r.Object = partial{asMeta, metaVersion, &l.Meta}
	}
	t.Rows = append(t.Rows, r)
}

// age says how long ago something was, as kubectl does: with as many units as are worth reading.
func age(now, then time.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	const minute, hour, day, year = 60, 60 * 60, 24 * 60 * 60, 365 * 24 * 60 * 60
	s := int(now.Sub(then).Seconds())
	two := func(large int, unit string, small int, below string) string {
		if rest := s % large / small; rest > 0 {
			return fmt.Sprintf("%d%s%d%s", s/large, unit, rest, below)
		}
		return fmt.Sprintf("%d%s", s/large, unit)
	}
	switch {
	case s < -1:
		return "<invalid>"
	case s < 0:
		return "0s"
	case s < 2*minute:
		return fmt.Sprintf("%ds", s)
	case s < 10*minute:
		return two(minute, "m", 1, "s")
	case s < 3*hour:
		return fmt.Sprintf("%dm", s/minute)
	case s < 8*hour:
		return two(hour, "h", minute, "m")
	case s < 2*day:
		return fmt.Sprintf("%dh", s/hour)
	case s < 8*day:
		return two(day, "d", hour, "h")
	case s < 2*year:
		return fmt.Sprintf("%dd", s/day)
	case s < 8*year:
		return two(year, "y", day, "d")
	}
	return fmt.Sprintf("%dy", s/year)
}
