package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leasehold/leasehold"
)

// The scanner says of no text that it is JSON if it is not, nor the other way round, and
// reads the same fields as encoding/json.
func FuzzReadHead(f *testing.F) {
	f.Add(state(7, "L", `{"a":[1,2,{"b":"\u00e4\n"}]}`))
	f.Add(`{"serial":3,"lineage":"x","meta":{},"encrypted_data":"AAAA","encryption_version":"v0"}`)
	f.Add(`{"version":4,"serial":0,"line\u0061ge":"y","terraform_version":"1.0"}`)
	f.Add(`{"a":tru}`)
	f.Add(`{"version":4,"serial":1e3,"lineage":"x"}`)
	f.Add(`[1]`)
	f.Fuzz(func(t *testing.T, text string) {
		s := newScanner()
		err := s.write([]byte(text))
		if err == nil {
			err = s.end()
		}
		valid := json.Valid([]byte(text)) && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
		limits := err != nil && (strings.Contains(err.Error(), "twice") || strings.Contains(err.Error(), "too long") || strings.Contains(err.Error(), "too much inside"))
		if (err == nil) != valid && !limits {
			t.Fatalf("valid is %v, and the scanner says: %v", valid, err)
		}
		whole, bad := s.head()
		if err != nil {
			return
		}
		pieces, badToo := ReadHead(iotest.OneByteReader(strings.NewReader(text)))
		// Who reads no more than needed may miss what is wrong further on.
		if bad == nil && (badToo != nil || whole.Serial != pieces.Serial || whole.Lineage != pieces.Lineage) {
			t.Fatalf("in one piece %+v, %v; byte by byte %+v, %v", whole, bad, pieces, badToo)
		}
		var want struct {
			Serial  json.Number
			Lineage string
		}
		if bad == nil && json.Unmarshal([]byte(text), &want) == nil && !strings.Contains(strings.ToLower(text), `\u`) && exact(text) && want.Lineage != whole.Lineage {
			t.Fatalf("the lineage is %q, and was read as %q", want.Lineage, whole.Lineage)
		}
	})
}

// exact tells whether encoding/json, which takes keys for the same that differ in case,
// could have read something else.
func exact(text string) bool {
	return strings.Count(strings.ToLower(text), `"lineage"`) == strings.Count(text, `"lineage"`) && strings.Count(text, `"lineage"`) == 1
}

// Whatever a client sends as its LockInfo, it is refused, or becomes a lease that can be
// told to others in a form that they can read.
func FuzzLockInfo(f *testing.F) {
	f.Add([]byte(info("4b3f-1")))
	f.Add([]byte(`{"ID":"x","Who":"\u0000\n","Created":"yesterday"}`))
	f.Add([]byte(`{"ID":"x y","Info":"\ud800"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		info, err := ParseLockInfo(body)
		if err != nil {
			if !errors.Is(err, leasehold.ErrInvalid) {
				t.Fatalf("the error is %v", err)
			}
			return
		}
		b := newBench(t)
		b.ask("LOCK", "/terraform/s", string(body)).among(200, 400)
		lease := &leasehold.Lease{ID: "lease", Holder: info.holder(), Reason: info.reason(), Labels: info.labels(body), Acquired: time.Unix(1, 0)}
		told, err := json.Marshal(tell(&leasehold.Error{Code: leasehold.Held, Lease: lease}, info.Version, time.Unix(2, 0)))
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			ID      string
			Created time.Time
		}
		if err := json.Unmarshal(told, &back); err != nil {
			t.Fatalf("a client can not read %s: %v", told, err)
		}
		if id, err := lockID(back.ID); err != nil || id != info.ID {
			t.Fatalf("the ID %q came back as %q, %v", info.ID, id, err)
		}
		if !bytes.HasPrefix(told, []byte(`{"ID":`)) {
			t.Fatalf("the ID is not the first: %s", told)
		}
	})
}

func (a answer) among(statuses ...int) {
	a.t.Helper()
	for _, s := range statuses {
		if a.status == s {
			return
		}
	}
	a.t.Fatalf("the status is %d: %s", a.status, a.body)
}
