package encode

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

func ptr[T any](v T) *T { return &v }

// example is a lease in which every field says something.
func example() *leasehold.Lease {
	return &leasehold.Lease{
		Namespace: "default", Resource: "reports/nightly", ID: "2m4kq1c9", Holder: "worker-7", Reason: `"q" <é>`, Session: "s",
		Labels: leasehold.Labels{{Key: "a", Value: "1"}, {Key: "b", Value: "\x01"}}, State: leasehold.Leased, Token: 57, Floor: 56,
		TTL: 90 * time.Second, Remaining: 42*time.Second + 999*time.Microsecond, Acquired: time.UnixMilli(1772339400123),
		Expires: time.UnixMilli(1772339460123), AvailableAt: time.UnixMilli(1772339470000), Revision: 181,
	}
}

// What is written by hand is what encoding/json would make of the API's type.
func TestLeaseIsWrittenRight(t *testing.T) {
	var b Buffer
	b.Lease(example(), Grant{Waited: time.Microsecond, Warning: "careful"})
	var got v1.Lease
	if err := json.Unmarshal(b.Bytes, &got); err != nil {
		t.Fatalf("%v: %s", err, b.Bytes)
	}
	moment := func(ms int64) *v1.Time { return &v1.Time{Time: time.UnixMilli(ms).UTC()} }
	want := v1.Lease{
		Namespace: "default", Resource: "reports/nightly", ID: "2m4kq1c9", Holder: "worker-7", Token: 57, Floor: 56, State: "leased",
		TTL: ptr(v1.Duration(90 * time.Second)), Expires: moment(1772339460123), RemainingMS: ptr(int64(42000)), Acquired: moment(1772339400123),
		AvailableAt: moment(1772339470000), Session: "s", Labels: map[string]string{"a": "1", "b": "\x01"}, Reason: `"q" <é>`, Revision: 181,
		WaitedMS: 1, Warning: "careful",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	byJSON, _ := json.Marshal(want)
	theirs := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(byJSON))
	if string(b.Bytes) != theirs {
		t.Errorf("by hand %s\nby json %s", b.Bytes, theirs)
	}
}

func TestMoments(t *testing.T) {
	for _, at := range []time.Time{
		time.Unix(0, 0), time.UnixMilli(1), time.UnixMilli(1772339460123), time.UnixMilli(999), time.Unix(5, 999999999),
		time.Date(2026, 3, 1, 0, 0, 0, 7e6, time.FixedZone("", -7*3600)), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC),
	} {
		want, _ := v1.Time{Time: at}.MarshalJSON()
		if got := `"` + string(appendMoment(nil, at)) + `"`; got != string(want) {
			t.Errorf("%v is written %s, want %s", at, got, want)
		}
	}
}

func TestSpans(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Second: "1s", 59 * time.Second: "59s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", 1500 * time.Millisecond: "1.5s",
		100 * time.Millisecond: "100ms", 48 * time.Hour: "48h", time.Hour + time.Second: "1h0m1s",
	} {
		if got := string(appendSpan(nil, d)); got != want || got != v1.Duration(d).String() {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

// Any bytes become a JSON string that says the same, as far as JSON can.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", `"\/`, "\x00\x1f\x7f", "é日本😀", "\xff\xfe", "a\xc3", "\u2028\ufffd", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := quote([]byte("x"), s)
		var got string
		if err := json.Unmarshal(quoted[1:], &got); err != nil {
			t.Fatalf("%q is written %q: %v", s, quoted, err)
		}
		if !utf8.Valid(quoted) {
			t.Errorf("%q is written %q, which is not UTF-8", s, quoted)
		}
		if want := string([]rune(s)); got != want {
			t.Errorf("%q is read back as %q", s, got)
		}
	})
}

func BenchmarkEncodeLease(b *testing.B) {
	lease := example()
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		p := New(make([]byte, 0, 1024), JSON)
		for b.Loop() {
			p.Reset(p.Bytes[:0], JSON)
			p.Lease(lease, Grant{})
		}
	})
	b.Run("as RESP", func(b *testing.B) {
		b.ReportAllocs()
		p := New(make([]byte, 0, 1024), RESP3)
		for b.Loop() {
			p.Reset(p.Bytes[:0], RESP3)
			p.Lease(lease, Grant{})
		}
	})
	b.Run("by encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		moment := func(t time.Time) *v1.Time {
			if t.IsZero() {
				return nil
			}
			return &v1.Time{Time: t}
		}
		for b.Loop() {
			remaining := lease.Remaining.Milliseconds()
			ttl := v1.Duration(lease.TTL)
			_, _ = json.Marshal(&v1.Lease{
				Namespace: lease.Namespace, Resource: lease.Resource, ID: lease.ID, Holder: lease.Holder, Token: uint64(lease.Token), Floor: uint64(lease.Floor),
				State: lease.State.String(), TTL: &ttl, Expires: moment(lease.Expires), RemainingMS: &remaining, Acquired: moment(lease.Acquired),
				AvailableAt: moment(lease.AvailableAt), Session: lease.Session, Labels: map[string]string{"a": "1", "b": "\x01"}, Reason: lease.Reason, Revision: uint64(lease.Revision),
			})
		}
	})
}
