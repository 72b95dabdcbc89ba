package terraform

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/tfstate"
)

const allowed = `{"by":"ann@desk","reason":"move from S3"}`

// A user saw: terraform state push -force ended with "HTTP error: 409", and nothing that could be
// typed into Terraform helped.
func TestAnotherLineageIsAcceptedOnce(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(1, "M", "")).expect(409, "leasehold state allow-lineage s --reason WHY")
	b.ask("POST", "/terraform/s?allow-lineage=1h", allowed).expect(200, `"revision"`)
	b.ask("GET", "/terraform/s?info", "").expect(200, `"allows_lineage"`, "move from S3")
	// What follows the present state does not follow the permit, and must not be older.
	b.ask("POST", "/terraform/s?ID=mine", state(4, "L", "")).expect(409, "serial")
	b.ask("POST", "/terraform/s?ID=mine", state(1, "M", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(1, "M", "")).expect(200) // its answer was lost
	b.ask("POST", "/terraform/s?ID=mine", state(9, "L", "")).expect(409, "allow-lineage")
	if a := b.ask("GET", "/terraform/s?info", "").expect(200); strings.Contains(a.body, "allows_lineage") {
		t.Errorf("the permit is still there: %s", a.body)
	}
	page, err := b.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default",
		Resource: tfstate.Path("s"), Verb: "put-record", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	forced := 0
	for _, l := range page.Lines {
		if l.Outcome == audit.OK && l.By == "ann@desk" && l.Reason == "forced, another lineage was allowed: move from S3" {
			forced++
		}
	}
	if forced != 1 {
		t.Errorf("the journal tells of %d forced writes: %+v", forced, page.Lines)
	}
}

func TestAPermitNeedsTheLock(t *testing.T) {
	b := newBench(t)
	b.ask("POST", "/terraform/s", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?allow-lineage=1h", allowed).expect(200)
	b.ask("POST", "/terraform/s", state(6, "M", "")).expect(409, "under its lock")
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(6, "M", "")).expect(200)
}

func TestAPermitIsForTheStateAsItWas(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?allow-lineage=1h", allowed).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(6, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(7, "M", "")).expect(409)
}

func TestAPermitEndsByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
		b.ask("POST", "/terraform/s?ID=mine", state(5, "L", "")).expect(200)
		b.ask("POST", "/terraform/s?allow-lineage=10m", allowed).expect(200)
		time.Sleep(11 * time.Minute)
		b.ask("POST", "/terraform/s?ID=mine", state(6, "M", "")).expect(409)
		if alarms := b.alarms("s"); len(alarms) != 0 {
			t.Errorf("an unused permit raises %v", alarms)
		}
	})
}

// noClose is an engine in which no session is closed: the server died before it could.
type noClose struct{ engine.Engine }

func (e noClose) Do(ctx context.Context, command core.Command) (core.Answer, error) {
	if _, ok := command.(*core.CloseSession); ok {
		return core.Answer{}, engine.Unavailable("gone")
	}
	return e.Engine.Do(ctx, command)
}

func TestAPermitThatIsLeftBehindIsVoid(t *testing.T) {
	b := newBench(t)
	b.door = newDoor(noClose{b.engine})
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?allow-lineage=1h", allowed).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(1, "M", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine", state(1, "N", "")).expect(409)
}

func TestBadPermits(t *testing.T) {
	b := newBench(t)
	b.ask("POST", "/terraform/none?allow-lineage=1h", allowed).expect(404, "there is no state none")
	b.ask("POST", "/terraform/s", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?allow-lineage=1h", `{"by":"ann"}`).expect(400, "needs a reason")
	b.ask("POST", "/terraform/s?allow-lineage=1h", `nonsense`).expect(400, "cannot be read")
	b.ask("POST", "/terraform/s?allow-lineage=25h", allowed).expect(400, "24h")
	b.ask("POST", "/terraform/s?allow-lineage=1s", allowed).expect(400, "from 1m")
	b.ask("POST", "/terraform/s?allow-lineage=1h", `{"reason":"a\u0000b"}`).expect(400, "control character")
	b.ask("POST", "/terraform/s?allow-lineage=1h", `{"reason":"`+strings.Repeat("x", 1025)+`"}`).expect(400, "1024")
	// Anybody may write a record there, also one that is no permit.
	for _, text := range []string{"", "nonsense", `{"revision":1}`, `{"revision":"1"}`} {
		b.do(&core.PutRecord{Namespace: "default", Path: tfstate.PermitPath("s"), Value: text})
		b.ask("GET", "/terraform/s?info", "").expect(200)
	}
}

func TestAForcedWriteSaysSo(t *testing.T) {
	b := newBench(t)
	b.ask("LOCK", "/terraform/s", info("mine")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine&force=true", state(5, "L", "")).expect(200)
	b.ask("POST", "/terraform/s?ID=mine&force=true", state(4, "L", "")).expect(200)
	page, err := b.engine.Journal().Find(t.Context(), audit.Query{Kind: audit.Operation, Namespace: "default",
		Resource: tfstate.Path("s"), Verb: "put-record", Oldest: true, Limit: 100})
	if err != nil || len(page.Lines) != 2 || page.Lines[0].Reason != "" ||
		page.Lines[1].Reason != "forced, a lower serial: apply" || page.Lines[1].By != "ann@ci-42" {
		t.Errorf("the journal has %+v, %v", page.Lines, err)
	}
}
