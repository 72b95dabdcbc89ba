package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// TestValidateRecords tries what records and transactions may have, and one more.
func TestValidateRecords(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	ops := func(n int) (list []core.Op) {
		for i := range n {
			list = append(list, core.Op{Do: core.Put, Path: fmt.Sprint("p", i)})
		}
		return list
	}
	put := func(change func(c *core.PutRecord)) core.Command {
		c := &core.PutRecord{Namespace: ns, Path: "p"}
		change(c)
		return c
	}
	then := func(list ...core.Op) core.Command { return &core.Txn{Namespace: ns, Then: list} }
	for i, test := range []struct {
		command core.Command
		says    string // empty: it is right
	}{
		{put(func(c *core.PutRecord) { c.Value = text(leasehold.MaxValue) }), ""},
		{put(func(c *core.PutRecord) { c.Value = text(leasehold.MaxValue + 1) }), "at most 65536 are allowed"},
		{put(func(c *core.PutRecord) { c.Path = text(1024) }), ""},
		{put(func(c *core.PutRecord) { c.Path = text(1025) }), "at most 1024 are allowed"},
		{put(func(c *core.PutRecord) { c.Path = "" }), "path is missing"},
		{put(func(c *core.PutRecord) { c.Namespace = "" }), "namespace is missing"},
		{put(func(c *core.PutRecord) { c.Session = text(1025) }), "session has 1025 bytes"},
		{put(func(c *core.PutRecord) { c.Fence.Lease = text(1025) }), "lease id has 1025 bytes"},
		{put(func(c *core.PutRecord) { c.Fence.Token = leasehold.MaxToken + 1 }), "no token is above"},
		{put(func(c *core.PutRecord) { c.Request.Sequence = 1 }), "name the session"},
		{put(func(c *core.PutRecord) { c.Large = &leasehold.Large{Size: leasehold.MaxLarge} }), ""},
		{put(func(c *core.PutRecord) { c.Large = &leasehold.Large{Size: leasehold.MaxLarge + 1} }), "at most 268435456 are allowed"},
		{put(func(c *core.PutRecord) { c.Large, c.Value = &leasehold.Large{}, "v" }), "one of them only"},
		{put(func(c *core.PutRecord) { c.Large, c.From = &leasehold.Large{}, 1 }), "one of them only"},
		{put(func(c *core.PutRecord) { c.Keep = leasehold.MaxKeep }), ""},
		{put(func(c *core.PutRecord) { c.Keep = leasehold.MaxKeep + 1 }), "1 to 1000 are allowed"},
		{then(core.Op{Do: core.ReleaseLease, ID: "l", Large: &leasehold.Large{}}), "nothing else"},
		{&core.DeleteRecord{Namespace: ns}, "path is missing"},
		{&core.DeleteRecord{Namespace: ns, Range: true}, ""},
		{&core.DeleteRecord{Namespace: ns, Path: "a", To: "b"}, "say that it is one"},
		{&core.DeleteRecord{Namespace: ns, Range: true, To: text(1025)}, "end of the range has 1025 bytes"},
		{&core.DeleteRecord{Namespace: ns, Range: true, IfRevision: 1}, "cannot be expected of a range"},
		{&core.DeleteRecord{Namespace: ns, Range: true, Fence: core.Fence{Token: 1}}, "name the lease"},
		{then(ops(128)...), ""},
		{then(ops(129)...), "at most 128 are allowed"},
		{&core.Txn{Namespace: ns, Else: ops(129)}, "at most 128 are allowed"},
		{&core.Txn{Namespace: ns, If: make([]core.Compare, 129)}, "at most 128 are allowed"},
		{&core.Txn{Namespace: ns, If: make([]core.Compare, 1)}, "unknown thing to compare"},
		{&core.Txn{Namespace: ns, If: []core.Compare{{What: core.RecordMod, Path: "p"}}}, "unknown relation"},
		{&core.Txn{Namespace: ns, If: []core.Compare{{What: core.RecordMod, Is: core.Equal, Path: "p", Text: "x"}}}, "a number or a text"},
		{&core.Txn{Namespace: ns, If: []core.Compare{{What: core.LeaseID, Is: core.Equal, Path: "p", Number: 1}}}, "a number or a text"},
		{&core.Txn{Namespace: ns, If: []core.Compare{{What: core.LeaseID, Is: core.Equal}}}, "path is missing"},
		{&core.Txn{}, "namespace is missing"},
		{then(core.Op{Path: "p"}), "unknown operation"},
		{then(core.Op{Do: core.Put, Path: "p", Range: true}), "one path is put"},
		{then(core.Op{Do: core.Get, Path: "p", Value: "v"}), "only to put"},
		{then(core.Op{Do: core.Put, Path: "p", Count: true}), "only to get"},
		{then(core.Op{Do: core.Get, Path: "p", Most: 1001}), "0 to 1000 are allowed"},
		{then(core.Op{Do: core.Get, Path: "p", Most: -1}), "0 to 1000 are allowed"},
		{then(core.Op{Do: core.Put, Path: "p", Value: text(leasehold.MaxValue + 1)}), "at most 65536"},
		{then(large(12)...), ""},
		{then(large(13)...), "too large"},
	} {
		err := test.command.Validate()
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%d: %v, and not %q", i, err, test.says)
		}
	}
}

// large are operations that together have 64 KiB each.
func large(n int) (list []core.Op) {
	for i := range n {
		list = append(list, core.Op{Do: core.Put, Path: fmt.Sprintf("%02d", i), Value: strings.Repeat("x", leasehold.MaxValue-2)})
	}
	return list
}

func putMany(d *desk, n int, value string) {
	for i := range n {
		d.must(&core.PutRecord{Namespace: ns, Path: fmt.Sprintf("r%06d", i), Value: value})
	}
}

// TestDeleteIsBounded deletes as many records as one command may, and not one more.
func TestDeleteIsBounded(t *testing.T) {
	d := newDesk(t)
	const most = leasehold.MaxDeletedAtOnce
	putMany(d, most+1, "")
	d.refused(&core.DeleteRecord{Namespace: ns, Range: true}, leasehold.Limited, "delete them in parts")
	half := fmt.Sprintf("r%06d", most/2)
	d.refused(&core.Txn{Namespace: ns, Then: []core.Op{{Do: core.Delete, Range: true, To: half}, {Do: core.Delete, Range: true, Path: half}}},
		leasehold.Limited, "more than 10240 records")
	if n := d.state.View(0).Counts().Records; n != most+1 {
		t.Fatalf("a refusal left %d records", n)
	}
	if answer := d.must(&core.DeleteRecord{Namespace: ns, Range: true, Path: "r000001"}); answer.Txn.Results[0].Deleted != most {
		t.Fatalf("%d were deleted", answer.Txn.Results[0].Deleted)
	}
}

// TestPagesAreBounded reads many records and large ones page by page, now and at an
// older revision.
func TestPagesAreBounded(t *testing.T) {
	d := newDesk(t)
	putMany(d, 2500, "v")
	for i := range 40 {
		d.must(&core.PutRecord{Namespace: ns, Path: fmt.Sprintf("s%02d", i), Value: strings.Repeat("x", leasehold.MaxValue)})
	}
	then := d.state.View(0).History(ns).Revision
	d.must(&core.DeleteRecord{Namespace: ns, Range: true, Path: "r001000"})
	for _, test := range []struct {
		revision leasehold.Revision
		pages    []int
	}{
		{0, []int{1000}},
		{then, []int{1000, 1000, 515, 15, 10}},
	} {
		var pages []int
		for q := (core.RecordQuery{Revision: test.revision}); ; {
			page, failure := d.state.View(0).Records(ns, q)
			if failure != nil {
				t.Fatal(failure)
			}
			pages = append(pages, len(page.Records))
			if !page.More {
				break
			}
			q.From = page.Records[len(page.Records)-1].Path + "\x00"
		}
		if fmt.Sprint(pages) != fmt.Sprint(test.pages) {
			t.Errorf("at revision %d the pages have %v", test.revision, pages)
		}
	}
}

// TestOldRevisionsAreGone writes so much that history forgets the beginning. Whoever
// asks for it is told what can still be read.
func TestOldRevisionsAreGone(t *testing.T) {
	d := newDesk(t)
	value := strings.Repeat("x", leasehold.MaxValue-8)
	for i := range 1200 {
		d.must(&core.PutRecord{Namespace: ns, Path: "a", Value: fmt.Sprintf("%08d", i) + value})
	}
	view := d.state.View(0)
	oldest, _ := view.History(ns).Oldest()
	if oldest < 600 || oldest > 800 {
		t.Errorf("history begins after revision %d", oldest)
	}
	if r, failure := view.Record(ns, "a", oldest); failure != nil || r.Mod != oldest || r.Value[:8] != fmt.Sprintf("%08d", oldest-1) {
		t.Errorf("the oldest can not be read: %v", failure)
	}
	_, failure := view.Record(ns, "a", oldest-1)
	if failure == nil || failure.Code != leasehold.Lost || !strings.Contains(failure.Message, fmt.Sprint(oldest, " is the oldest")) {
		t.Errorf("what is gone is read: %v", failure)
	}
}

// TestSessionHoldsSoManyRecords binds records to a session that has as much as it can.
func TestSessionHoldsSoManyRecords(t *testing.T) {
	d := newDesk(t)
	d.must(&core.OpenSession{Namespace: ns, ID: "s1", TTL: time.Hour})
	put := func(path string) *core.PutRecord { return &core.PutRecord{Namespace: ns, Path: path, Session: "s1"} }
	for i := range leasehold.MaxClaimsPerSession {
		d.must(put(fmt.Sprint("r", i)))
	}
	d.refused(put("one more"), leasehold.Limited, "as many as it can have")
	d.refused(&core.Acquire{Namespace: ns, Resource: "printer", ID: "a", Holder: "ann", Session: "s1"}, leasehold.Limited, "as many as it can have")
	d.must(put("r0"))
	d.must(&core.PutRecord{Namespace: ns, Path: "r0"})
	d.must(put("one more"))
	d.must(&core.CloseSession{Namespace: ns, ID: "s1"})
	if page, failure := d.state.View(0).Records(ns, core.RecordQuery{From: "r16", Count: true}); failure == nil && page.Count != 0 {
		t.Errorf("%d records are there after the end of their session", page.Count)
	}
	d.tickAll()
	if events := d.state.View(0).History(ns).All(); events[len(events)-1].Kind != leasehold.RecordDeleted || d.state.View(0).Counts().Records != 1 {
		t.Errorf("%d records are left", d.state.View(0).Counts().Records)
	}
}

// TestPastGoesOn works out the past of a range, lets the state go on, and reads then: what
// happened in between is taken back too, and what is forgotten by then is said to be.
func TestPastGoesOn(t *testing.T) {
	d := newDesk(t)
	putMany(d, 3, "old")
	q := core.RecordQuery{Revision: 3}
	d.must(&core.PutRecord{Namespace: ns, Path: "r000001", Value: "new"})
	read := func(between func()) (core.RecordPage, *leasehold.Error) {
		q.Past = d.state.View(0).History(ns).Past(q)
		between()
		return d.state.View(0).Records(ns, q)
	}
	page, failure := read(func() {
		d.must(&core.DeleteRecord{Namespace: ns, Path: "r000002"})
		d.must(&core.PutRecord{Namespace: ns, Path: "r000001", Value: "newer"})
		d.must(&core.PutRecord{Namespace: ns, Path: "r000009", Value: "newer"})
	})
	if failure != nil || tellPage(page) != "found r000000 old (1) r000001 old (2) r000002 old (3) at 3" {
		t.Errorf("%s, %v", tellPage(page), failure)
	}
	_, failure = read(func() {
		for range 1200 {
			d.must(&core.PutRecord{Namespace: ns, Path: "a", Value: strings.Repeat("x", leasehold.MaxValue)})
		}
	})
	if failure == nil || failure.Code != leasehold.Lost {
		t.Errorf("what was forgotten meanwhile was read: %v", failure)
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a/": "a0", "a\xff": "b", "\xff\xff": "", "a\xfe": "a\xff"} {
		if got := core.PrefixEnd(prefix); got != want {
			t.Errorf("all that begins with %q ends before %q, not %q", prefix, got, want)
		}
	}
}

// TestVersionsAreBounded fills the shelves, and deletes and makes anew when they are full.
func TestVersionsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("left to: make test-all") // it makes a million versions
	}
	state := core.NewAt(core.NewestLevel)
	do := func(commands ...core.Command) []core.Answer {
		t.Helper()
		result, err := state.Apply(start, 0, commands)
		if err != nil {
			t.Fatal(err)
		}
		return result.Answers
	}
	const records = leasehold.MaxVersions / (leasehold.MaxKeep + 1)
	for i := range records {
		var batch []core.Command
		for range leasehold.MaxKeep + 1 {
			batch = append(batch, &core.PutRecord{Namespace: ns, Path: fmt.Sprint("p", i), Keep: leasehold.MaxKeep})
		}
		do(batch...)
	}
	var refused *leasehold.Error
	for i := range leasehold.MaxKeep + 2 {
		if a := do(&core.PutRecord{Namespace: ns, Path: "last", Keep: leasehold.MaxKeep}); a[0].Err != nil {
			refused = a[0].Err
			t.Logf("refused after %d more", i)
			break
		}
	}
	if refused == nil || refused.Code != leasehold.Limited || !strings.Contains(refused.Message, "let records keep fewer") {
		t.Fatalf("one more than there can be: %v", refused)
	}
	// A full shelf takes one more, since the oldest falls; deleting needs no room; and
	// what keeps less makes room.
	for _, c := range []core.Command{
		&core.PutRecord{Namespace: ns, Path: "p0", Value: "x"},
		&core.DeleteRecord{Namespace: ns, Path: "p0"},
		&core.PutRecord{Namespace: ns, Path: "p0", Value: "y"},
		&core.PutRecord{Namespace: ns, Path: "p1", Keep: leasehold.KeepNone},
		&core.PutRecord{Namespace: ns, Path: "last"},
		&core.PutRecord{Namespace: ns, Path: "new", Keep: 1},
	} {
		if a := do(c); a[0].Err != nil {
			t.Fatalf("%s: %v", writeCommand(c), a[0].Err)
		}
	}
	if err := state.Check(); err != nil {
		t.Fatal(err)
	}
}
