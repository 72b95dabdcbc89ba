package terraform

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// Whatever a client sends as its LockInfo, it is refused, or becomes a lease that can be
// told to others in a form that they can read.
func FuzzLockInfo(f *testing.F) {
	f.Add([]byte(info("4b3f-1")))
	f.Add([]byte(`{"ID":"x","Who":"\u0000\n","Created":"yesterday"}`))
	f.Add([]byte(`{"ID":"x y","Info":"\ud800"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		info, err := tfstate.ParseLockInfo(body)
		if err != nil {
			if !errors.Is(err, leasehold.ErrInvalid) {
				t.Fatalf("the error is %v", err)
			}
			return
		}
		b := newBench(t)
		b.ask("LOCK", "/terraform/s", string(body)).among(200, 400)
		lease := &leasehold.Lease{ID: "lease", Foreign: info.ID, Holder: info.Holder(), Reason: info.Reason(), Labels: labelsOf(&info, body), Acquired: time.Unix(1, 0)}
		told, err := json.Marshal(tell(&leasehold.Error{Code: leasehold.Held, Lease: lease}, info.Version, time.Unix(2, 0)))
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			ID      string
			Created time.Time
		}
		if err := json.Unmarshal(told, &back); err != nil {
			t.Fatalf("a client cannot read %s: %v", told, err)
		}
		if id, err := tfstate.ParseLockID(back.ID); err != nil || id != info.ID {
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
