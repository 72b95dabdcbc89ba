package wire

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// texts says how long a text is that is no name, in bytes.
var texts = map[string]int{
	"Record.Value": leasehold.MaxValue, "Version.Value": leasehold.MaxValue, "Task.Result": leasehold.MaxResult,
	"Event.Reason": leasehold.MaxResult, "Alarm.Text": 16 * leasehold.MaxName, "Issuer.Keys": access.MaxKeys,
	"Usual.Holds": 1024, "Usual.Waits": 1024, "Kind.Name": 64, "Kind.Recent": 1024, "Process.User": leasehold.MaxProcessText,
	"Process.Name": leasehold.MaxProcessText, "Terms.Foreign": leasehold.MaxForeign, "Terms.Door": leasehold.MaxDoor,
	"Terms.Note": leasehold.MaxNote, "Lease.Foreign": leasehold.MaxForeign, "Lease.Door": leasehold.MaxDoor,
	"Lease.Note": leasehold.MaxNote, "Ending.Foreign": leasehold.MaxForeign, "Waiter.Foreign": leasehold.MaxForeign,
	"Event.Foreign": leasehold.MaxForeign, "Outcome.Key": 3 * leasehold.MaxName, "Outcome.Subject": 3 * leasehold.MaxName,
	"Error.Message": 64 * 5 * leasehold.MaxName, // with a cycle

	// The names of units are bounded together.
	"Terms.Units": poolName, "Reservation.Units": poolName, "Rest.Units": poolName,
	"Definition.Units": unitName, "Lease.Units": unitName, "Unit.Name": unitName,
}

// lists says how many there are in a list. One that is not here fails the test: say what bounds it, in the core and then
// here.
var lists = map[string]int{
	"Head.Raised": int(leasehold.LateRenewal), "Touched.IDs": 256, "Session.Intervened": 256, "Wait.With": leasehold.MaxTogether,
	"More.Rests": rests, "Shares.Units": leasehold.MaxUnits, "Select.Units": 64, "Definition.Limits": leasehold.MaxUnitLimits,
	"Answer.Also": leasehold.MaxTogether, "TxnAnswer.Results": leasehold.MaxOps, "TxnResult.Also": 0, "Error.Cycle": 64,
	"Token.Groups": access.MaxGroups, "Certificate.Groups": access.MaxGroups, "Issuer.Audiences": access.MaxGroups,
	"Issuer.Groups": access.MaxRules, "Use.Strangers": leasehold.MaxUnitProcesses,
	"Terms.Units": leasehold.MaxPoolUnits, "Reservation.Units": leasehold.MaxPoolUnits, "Rest.Units": leasehold.MaxPoolUnits / rests,
	"Definition.Units": leasehold.MaxUnits, "Lease.Units": leasehold.MaxUnits,
}

const (
	rests    = 128
	poolName = leasehold.MaxPoolNames / leasehold.MaxPoolUnits
	unitName = leasehold.MaxUnitNames / leasehold.MaxUnits
)

// A filler makes values as large as they can be.
type filler struct{ *testing.T }

// fill fills a value, which is the field of a name, or one in its list.
func (f filler) fill(v reflect.Value, name string) {
	switch p := v.Addr().Interface().(type) {
	case *leasehold.Labels:
		for i := range leasehold.MaxLabels / 2 {
			*p = append(*p, leasehold.Label{Key: string([]byte{byte(1 + i>>8), byte(i)})})
		}
		return
	case *time.Time:
		*p = time.Unix(0, math.MaxInt64)
		return
	case *leasehold.Kind:
		*p = leasehold.RecordPut
		return
	case **leasehold.Large, **core.RecordPage, *[]*leasehold.Record, **core.AccessAnswer, **leasehold.Hold, **leasehold.Upcoming:
		return // nothing, or less than what stands in its place
	case **core.TxnAnswer:
		if name == "TxnResult.Txn" {
			return // its operations are counted in the whole
		}
	case *core.TxnResult:
		f.fields(v)
		p.Record.Value, p.Waiter = "", nil
		return
	case *leasehold.Event:
		f.fields(v)
		p.Alarm = 0
		return
	case *leasehold.Version:
		f.fields(v)
		p.Current = false
		return
	case *leasehold.Waiter:
		f.fields(v)
		p.ForecastError = 0
		return
	case *leasehold.Error:
		f.fields(v)
		p.ForecastError = 0
		return
	case *core.Outcome: // that of a transaction, which has the longest
		f.fields(v)
		p.Answer = core.Answer{Txn: p.Answer.Txn, Also: p.Answer.Also, Lease: p.Answer.Lease, Err: p.Answer.Err, Session: p.Answer.Session}
		p.Answer.Lease.Units = slices.Repeat([]string{strings.Repeat("x", poolName)}, leasehold.MaxPoolUnits)
		return
	}
	f.kind(v, name)
}

func (f filler) kind(v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.String:
		size, known := texts[name]
		if !known {
			size = leasehold.MaxName
		}
		v.SetString(strings.Repeat("x", size))
	case reflect.Slice:
		most, known := lists[name]
		if !known {
			f.Fatalf("nobody said how long the list %s may be", name)
		}
		v.Set(reflect.MakeSlice(v.Type(), most, most))
		for i := range most {
			f.fill(v.Index(i), name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), name)
	case reflect.Struct:
		f.fields(v)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint32, reflect.Uint64, reflect.Uint, reflect.Uint16:
		v.SetUint(1<<v.Type().Bits() - 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt64)
	}
}

func (f filler) fields(v reflect.Value) {
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() && v.Field(i).CanSet() {
			f.fill(v.Field(i), v.Type().Name()+"."+field.Name)
		}
	}
}

// A snapshot that cannot be written stops every server: so each record has room for as much as the core accepts.
func TestTheLargestRecordsCanBeWritten(t *testing.T) {
	for kind, row := range pieceKinds {
		if kind == kindEnd {
			continue
		}
		value := row.fresh()
		filler{t}.fill(reflect.ValueOf(value).Elem(), "")
		space := strings.Repeat("s", leasehold.MaxName)
		if row.wide {
			space = ""
		}
		if e, ok := value.(*leasehold.Event); ok {
			e.Namespace = space
		}
		b := appendRecordAt(t, Level, core.Piece{Space: space, Value: value})
		if got := decodeRecordAt(t, Level, b); kindOf(got.Value) != uint64(kind) {
			t.Errorf("%s comes back as %s", row.name, pieceKinds[kindOf(got.Value)].name)
		}
	}
}
