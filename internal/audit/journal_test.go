package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	space = "default"
	wall  = int64(1767323045e9) // 2026-01-02 03:04:05
)

// A world is a state whose log is kept, entry by entry.
type world struct {
	t     testing.TB
	state *core.State
	at    time.Duration
	log   []Entry
}

func newWorld(t testing.TB) *world { return &world{t: t, state: core.New()} }

// entry applies commands of one origin and returns the entry.
func (w *world) entry(o leasehold.Origin, commands ...core.Command) Entry {
	w.t.Helper()
	e := Entry{Index: uint64(len(w.log) + 1), Wall: wall + int64(w.at), Size: 100, Commands: commands}
	if o != (leasehold.Origin{}) {
		e.From.Origins = slices.Repeat([]leasehold.Origin{o}, len(commands))
	}
	var err error
	if e.Result, err = w.state.Apply(core.Time(time.Hour+w.at), e.Wall, commands, e.From); err != nil {
		w.t.Fatal(err)
	}
	w.log = append(w.log, e)
	return e
}

// cycle is a lease and its release in one entry: two operations and a hold.
func (w *world) cycle(i int) Entry {
	id := fmt.Sprint("id", i)
	w.at += time.Second
	return w.entry(leasehold.Origin{Address: "10.0.0.1:1", Door: "native"},
		&core.Acquire{Namespace: space, Resource: fmt.Sprintf("jobs/%02d", i%20), ID: id, Holder: fmt.Sprint("worker-", i%7), TTL: time.Minute},
		&core.Release{Namespace: space, ID: id})
}

// refused is a lease and two refusals around it, in one entry.
func (w *world) refused(i int) Entry {
	id, resource := fmt.Sprint("more", i), fmt.Sprintf("jobs/%02d", i%20)
	return w.entry(leasehold.Origin{Address: "10.0.0.2:1", Door: "azure"},
		&core.Break{Namespace: space, Resource: resource, By: fmt.Sprint("worker-", i%7)},
		&core.Acquire{Namespace: space, Resource: resource, ID: id, Holder: fmt.Sprint("worker-", i%7), TTL: time.Minute},
		&core.Acquire{Namespace: space, Resource: resource, ID: id + "x", Holder: fmt.Sprint("worker-", i%7), TTL: time.Minute},
		&core.Release{Namespace: space, ID: id})
}

func start(t testing.TB, c Config) *Journal {
	t.Helper()
	if c.Bytes == 0 {
		c.Bytes = MinBytes
	}
	if c.End == 0 {
		c.End = 1 << 60
	}
	j, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func closed(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// all goes through the pages of a query.
func all(t testing.TB, j *Journal, q Query) (lines []Line) {
	t.Helper()
	if q.Namespace == "" {
		q.Namespace = space
	}
	if q.Limit == 0 {
		q.Limit = 1000
	}
	for range 100000 {
		page, err := j.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Lines) > q.Limit {
			t.Fatalf("a page has %d lines", len(page.Lines))
		}
		lines = append(lines, page.Lines...)
		if page.Next == (Place{}) {
			return lines
		}
		if q.After, err = ParsePlace(page.Next.String()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the pages do not end")
	return nil
}

// projected is what the journal should have of some entries, oldest first.
func projected(entries []Entry) (lines []Line) {
	operations, refusals := newProjector(), newProjector()
	refusals.refusals = true
	for i := range entries {
		from := len(lines)
		operations.lines(&entries[i], func(l *Line) { lines = append(lines, *l) })
		refusals.lines(&entries[i], func(l *Line) { lines = append(lines, *l) })
		slices.SortFunc(lines[from:], func(a, b Line) int { return int(a.N) - int(b.N) })
	}
	return lines
}

// what picks the lines that a query means, without any of its code.
func what(lines []Line, q Query) (found []Line) {
	for _, l := range lines {
		begin, end := l.At, l.At
		if l.Kind == Hold {
			begin, end = l.Since, l.Until
		}
		if l.Kind == q.Kind && l.Namespace == cmp.Or(q.Namespace, space) && (q.Resource == "" || l.Resource == q.Resource) && strings.HasPrefix(l.Resource, q.Prefix) &&
			(q.Holder == "" || l.Holder == q.Holder) && (q.Actor == "" || l.Actor == q.Actor) && (q.Verb == "" || l.Verb == q.Verb) &&
			(q.From.IsZero() || end.UnixNano() >= q.From.UnixNano()) && (q.Until.IsZero() || begin.UnixNano() < q.Until.UnixNano()) {
			found = append(found, l)
		}
	}
	if !q.Oldest {
		slices.Reverse(found)
	}
	return found
}

func same(t testing.TB, what string, got, want []Line) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d lines, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s: line %d is\n%+v\nwant\n%+v", what, i, got[i], want[i])
		}
	}
}

// Whatever is asked for is what is found, in memory and on disk, in either order, in
// pages of any size.
func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"memory": "", "disk": filepath.Join(t.TempDir(), "journal")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			j := start(t, Config{Dir: dir})
			defer closed(t, j)
			for i := range 2000 {
				j.Append(w.cycle(i))
				if i%6 == 0 {
					j.Append(w.refused(i))
				}
			}
			for _, j := range []*Journal{j, j.refusals} {
				if segments, err := j.settled(); err != nil || len(segments) < 3 {
					t.Fatalf("there are only %d segments, %v", len(segments), err)
				}
			}
			lines := projected(w.log)
			dice := rand.New(rand.NewPCG(1, 1))
			moment := func() time.Time {
				return time.Unix(0, wall).Add(time.Duration(dice.IntN(2500)) * time.Second)
			}
			for n := range 120 {
				q := Query{Kind: Kind(1 + dice.IntN(2)), Oldest: dice.IntN(2) == 0, Limit: 1 + dice.IntN(1000)}
				if dice.IntN(2) == 0 {
					q.Resource = fmt.Sprintf("jobs/%02d", dice.IntN(22))
				} else if dice.IntN(2) == 0 {
					q.Prefix = "jobs/1"
				}
				if dice.IntN(3) == 0 {
					q.Holder = fmt.Sprint("worker-", dice.IntN(8))
				}
				if q.Kind == Operation && dice.IntN(3) == 0 {
					q.Actor = fmt.Sprint("worker-", dice.IntN(8))
				}
				if q.Kind == Operation && dice.IntN(3) == 0 {
					q.Verb = []string{"acquire", "release", Grant}[dice.IntN(3)]
				}
				if dice.IntN(2) == 0 {
					q.From = moment()
				}
				if dice.IntN(2) == 0 {
					q.Until = moment()
				}
				same(t, fmt.Sprintf("%d: %+v", n, q), all(t, j, q), what(lines, q))
			}
		})
	}
}

// A search for one name passes over the segments that do not have it.
func TestASearchReadsWhatItMust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := start(t, Config{Dir: t.TempDir()})
	defer closed(t, j)
	for i := range 2500 {
		if i == 100 {
			j.Append(w.entry(leasehold.Origin{}, &core.Acquire{Namespace: space, Resource: "rare", ID: "x", Holder: "somebody", TTL: time.Hour}))
		}
		j.Append(w.cycle(i))
	}
	segments, err := j.settled()
	if err != nil {
		t.Fatal(err)
	}
	if len(segments) < 3 {
		t.Fatalf("only %d segments", len(segments))
	}
	for name, q := range map[string]Query{
		"a resource": {Resource: "rare"}, "a holder": {Holder: "somebody"}, "an actor": {Actor: "somebody"},
		"a time": {From: time.Unix(0, wall+99e9), Until: time.Unix(0, wall+101e9), Prefix: "rare"},
	} {
		q.Kind, q.Namespace, q.Limit = Operation, space, 10
		s := search{Query: q, journal: j, left: maxLook}
		page, err := s.run(t.Context(), segments)
		if err != nil || len(page.lines) != 1 {
			t.Fatalf("%s: %d lines, %v", name, len(page.lines), err)
		}
		// Its own segment, the newest, and the filters of the others.
		if read := maxLook - s.left; read > segments[0].size+segments[len(segments)-1].size+int64(len(segments)*filterBytes(j.segmentBytes)) {
			t.Errorf("%s: %d bytes were read of %d", name, read, j.Statistics().Bytes)
		}
	}
}

// A page that may not read more is short, and the next one goes on.
func TestASearchIsBounded(t *testing.T) {
	w := newWorld(t)
	j := start(t, Config{})
	defer closed(t, j)
	for i := range 2500 {
		j.Append(w.cycle(i))
	}
	segments, err := j.settled()
	if err != nil {
		t.Fatal(err)
	}
	for _, oldest := range []bool{false, true} {
		q := Query{Kind: Hold, Namespace: space, Prefix: "none", Limit: 10, Oldest: oldest}
		pages, after := 0, spot{}
		for ; pages == 0 || after != (spot{}); pages++ {
			s := search{Query: q, journal: j, after: after, left: 1}
			page, err := s.run(t.Context(), segments)
			if err != nil || len(page.lines) > 0 {
				t.Fatalf("%+v, %v", page, err)
			}
			after = page.next
		}
		if pages != len(segments) {
			t.Errorf("%d pages for %d segments", pages, len(segments))
		}
	}
}

func TestTheJournalIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t)
	j := start(t, Config{Dir: dir, Bytes: MinBytes})
	for i := range 9000 {
		j.Append(w.cycle(i))
		if i%500 == 0 {
			if size := onDisk(t, dir); size > MinBytes {
				t.Fatalf("after %d it has %d bytes", i, size)
			}
		}
	}
	lines := all(t, j, Query{Kind: Operation})
	if len(lines) < 5000*3/4 || len(lines) == 18000 { // the last quarter is for refusals
		t.Errorf("%d of 18000 lines are there", len(lines))
	}
	same(t, "the newest", lines, what(projected(w.log), Query{Kind: Operation})[:len(lines)])
	if s := j.Statistics(); s.Dropped == 0 || s.Lines != 27000 || s.Bytes > MinBytes || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
	closed(t, j)

	// A smaller bound holds from the start on.
	j = start(t, Config{Dir: dir, Bytes: 2 * MinBytes})
	closed(t, j)
	j = start(t, Config{Dir: dir, Bytes: MinBytes})
	if size := onDisk(t, dir); size > MinBytes {
		t.Errorf("it has %d bytes", size)
	}
	closed(t, j)
	if _, err := Start(Config{Dir: dir, Bytes: MinBytes - 1}); err == nil || !strings.Contains(err.Error(), "at least 1048576") {
		t.Errorf("too small: %v", err)
	}
}

func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// A journal that is cut anywhere, and given the log again, has each line once.
func TestWhatACrashTookIsWrittenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := filepath.Join(t.TempDir(), "journal")
	j := start(t, Config{Dir: first})
	for i := range 3 {
		j.Append(w.cycle(i))
	}
	closed(t, j)
	whole, err := os.ReadFile(segmentName(first, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := projected(w.log)
	for size := 0; size <= len(whole); size++ {
		dir := filepath.Join(t.TempDir(), "journal")
		torn := bytes.Clone(whole[:size])
		if size%3 == 1 { // some disks leave zeros behind
			torn = append(torn, make([]byte, 100)...)
		}
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(segmentName(dir, 1), torn, 0o600)); err != nil {
			t.Fatal(err)
		}
		j := start(t, Config{Dir: dir})
		for _, e := range w.log {
			j.Append(e)
		}
		for _, kind := range []Kind{Operation, Hold} {
			q := Query{Kind: kind, Oldest: true}
			same(t, fmt.Sprintf("cut at %d", size), all(t, j, q), what(want, q))
		}
		closed(t, j)
	}
}

func TestAReopenedJournalGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t)
	for round := range 6 {
		j := start(t, Config{Dir: dir, Bytes: 4 * MinBytes})
		for _, e := range w.log { // as a replay would
			j.Append(e)
		}
		for i := range 1000 {
			j.Append(w.cycle(round*1000 + i))
		}
		if round%2 == 0 { // indexes are made again
			names, _ := filepath.Glob(filepath.Join(dir, "*"+indexSuffix))
			for _, name := range names {
				_ = os.Remove(name)
			}
		}
		closed(t, j)
	}
	j := start(t, Config{Dir: dir, Bytes: 4 * MinBytes})
	defer closed(t, j)
	q := Query{Kind: Operation, Resource: "jobs/07", Limit: 10}
	same(t, "after six starts", all(t, j, q), what(projected(w.log), q))
}

// A damaged line costs the rest of its segment, which is said, and nothing else.
func TestDamageIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	j := start(t, Config{Dir: dir})
	for i := range 2500 {
		j.Append(w.cycle(i))
	}
	closed(t, j)
	name := segmentName(dir, 1)
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, withIndex := range []bool{true, false} {
		if !withIndex {
			if err := os.Remove(indexName(dir, 1)); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		j = start(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		lines := all(t, j, Query{Kind: Operation, Oldest: true})
		if len(lines) >= 5000 || len(lines) < 4000 || lines[len(lines)-1].Index != 2500 {
			t.Errorf("%d lines, the last of entry %d", len(lines), lines[len(lines)-1].Index)
		}
		all(t, j, Query{Kind: Operation})
		closed(t, j)
		if n := strings.Count(log.String(), "is damaged"); n != 1 || j.Statistics().Damaged != 1 {
			t.Errorf("it was said %d times: %s", n, log.String())
		}
	}
}

// A log that was replaced by an older one has entries with numbers that the journal has
// seen before. They are others, and are written.
func TestAnotherLogIsNotTakenForTheSame(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t)
	j := start(t, Config{Dir: dir})
	for i := range 10 {
		j.Append(w.cycle(i))
	}
	closed(t, j)
	j = start(t, Config{Dir: dir, End: 3})
	defer closed(t, j)
	other := newWorld(t)
	j.Append(other.cycle(0))
	if lines := all(t, j, Query{Kind: Hold}); len(lines) != 11 {
		t.Errorf("%d lines", len(lines))
	}
}

func TestLinesAreSyncedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		j := start(t, Config{})
		defer closed(t, j)
		expect := func(written, synced uint64) {
			t.Helper()
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.written != written || j.synced != synced {
				t.Errorf("%d written, %d synced; want %d and %d", j.written, j.synced, written, synced)
			}
		}
		j.Append(w.cycle(1))
		synctest.Wait()
		expect(0, 0)
		time.Sleep(gatherTime)
		synctest.Wait()
		expect(1, 0)
		time.Sleep(syncEvery)
		synctest.Wait()
		expect(1, 1)
		j.Append(w.cycle(2))
		if err := j.Flush(); err != nil {
			t.Error(err)
		}
		expect(2, 2)
	})
}

// Lines wait for company for a moment, but nobody who wants to see them has to wait for that.
func TestLinesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		j := start(t, Config{})
		defer closed(t, j)
		began := time.Now()
		for i := range 3 {
			j.Append(w.cycle(i))
			synctest.Wait()
			if n := j.Statistics().Queued; n != i+1 {
				t.Errorf("%d of %d wait", n, i+1)
			}
		}
		if lines := all(t, j, Query{Kind: Hold}); len(lines) != 3 {
			t.Errorf("a reader finds %d lines", len(lines))
		}
		j.push(item{entry: w.cycle(4)}, gatherBytes+1, maxQueued)
		synctest.Wait()
		if n := j.Statistics().Queued; n != 0 {
			t.Errorf("%d wait, although there is much to write", n)
		}
		j.Append(w.cycle(5))
		if err := j.Flush(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited %v for it", took)
		}
	})
}

// Who brings more than the disk takes has to wait; nothing is dropped. When the journal
// fails, everybody is let go.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		failed := make(chan error, 2)
		j := start(t, Config{Failed: func(err error) { failed <- err }})
		j.mu.Lock()
		j.queued = maxQueued + 1 // as if the writer hung
		j.mu.Unlock()
		appended := make(chan struct{})
		go func() {
			j.push(item{entry: w.cycle(1)}, 1, maxQueued)
			close(appended)
		}()
		synctest.Wait()
		select {
		case <-appended:
			t.Fatal("it was taken")
		default:
		}
		j.Fail(errors.New("the disk hangs"))
		j.Fail(errors.New("again"))
		<-appended
		if err := <-failed; len(failed) > 0 || !strings.Contains(err.Error(), "the journal cannot be written: the disk hangs") {
			t.Errorf("%v", err)
		}
		if err := j.Flush(); err == nil {
			t.Error("what is not written was flushed")
		}
		if _, err := j.Find(t.Context(), Query{Limit: 1}); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("found: %v", err)
		}
		if err := j.Close(); err == nil || j.Statistics().Failures != 1 {
			t.Errorf("closed: %v", err)
		}
		synctest.Wait()
	})
}

func TestAWriteThatFails(t *testing.T) {
	w := newWorld(t)
	failed := make(chan error, 1)
	j := start(t, Config{Dir: t.TempDir(), Failed: func(err error) { failed <- err }})
	_ = j.file.Close()
	j.Append(w.cycle(1))
	if err := <-failed; err == nil {
		t.Error("nothing was said")
	}
	<-j.ended
}

func TestManyMayLook(t *testing.T) {
	j := start(t, Config{})
	defer closed(t, j)
	for range maxSearches {
		j.searches <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Find(ctx, Query{Limit: 1}); !errors.Is(err, leasehold.ErrUnavailable) {
		t.Errorf("one more: %v", err)
	}
	for range maxSearches {
		<-j.searches
	}
}

func TestNoJournal(t *testing.T) {
	var j *Journal
	j.Append(Entry{})
	j.Refused(Refusal{})
	j.Append(newWorld(t).cycle(1))
	if j.Flush() != nil || j.Close() != nil || j.Operation() != 0 || j.Statistics() != (Statistics{}) {
		t.Error("a journal that is not there does something")
	}
}

func TestPlaces(t *testing.T) {
	for _, good := range []string{"1.0", "7.4194304", "18446744073709551615.9223372036854775807", "0.0-1.7", "3.9-12.0"} {
		if p, err := ParsePlace(good); err != nil || p.String() != good {
			t.Errorf("%s: %v, %v", good, p, err)
		}
	}
	for _, bad := range []string{"", "1", "1.", ".1", "0.0", "01.1", "1.-1", "1.1.1", "x.1", "1.x", "18446744073709551616.1", "+1.1", "0.5", "1.1-", "1.1-0.0", "-1.1", "1.1-2.2-3.3"} {
		if p, err := ParsePlace(bad); err == nil {
			t.Errorf("%s was read as %v", bad, p)
		}
	}
}

func TestDenied(t *testing.T) {
	j := start(t, Config{Now: func() time.Time { return time.Unix(0, wall) }})
	defer closed(t, j)
	j.Refused(Refusal{Origin: leasehold.Origin{Actor: "eve", Address: "10.0.0.9:1", Door: "native"}, Namespace: space, Verb: "break", Resource: "r", Reason: "no right"})
	lines := all(t, j, Query{Kind: Operation, Actor: "eve"})
	want := Line{
		Kind: Operation, At: time.Unix(0, wall).UTC(), Namespace: space, Resource: "r", Reason: "no right", Verb: "break", Outcome: "denied",
		Actor: "eve", Address: "10.0.0.9:1", Door: "native",
	}
	same(t, "denied", lines, []Line{want})
}

// refuse notes a refusal by a door.
func refuse(j *Journal, i int) {
	j.Refused(Refusal{
		Origin: leasehold.Origin{Actor: "eve", Address: "10.0.0.9:1", Door: "azure"}, Namespace: space, Verb: "put-record",
		Resource: fmt.Sprint("r", i), Outcome: leasehold.Held.String(), Reason: "somebody else has it",
	})
}

// Repeated refusals must not make the journal forget what others did.
func TestRefusalsPushOutNoOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	j := start(t, Config{Dir: dir, Bytes: MinBytes})
	for i := range 500 {
		j.Append(w.cycle(i))
	}
	operations := projected(w.log)
	for i := range 10000 {
		refuse(j, i)
		j.Append(w.entry(leasehold.Origin{}, &core.Release{Namespace: space, ID: fmt.Sprint("none", i)}))
	}
	check := func() {
		t.Helper()
		same(t, "operations", all(t, j, Query{Kind: Operation, Prefix: "jobs/", Oldest: true}), what(operations, Query{Kind: Operation, Prefix: "jobs/", Oldest: true}))
		if size := onDisk(t, dir); size > MinBytes {
			t.Errorf("the journal has %d bytes, and may have %d", size, MinBytes)
		}
		if got := all(t, j, Query{Kind: Operation, Resource: "r9999"}); len(got) != 1 || got[0].Outcome != "held" {
			t.Errorf("the newest refusal is %+v", got)
		}
		if got := all(t, j, Query{Kind: Operation, Resource: "r0"}); len(got) != 0 {
			t.Errorf("the oldest refusal is still there: %+v", got)
		}
		if got := all(t, j, Query{Kind: Operation, Verb: "release", Limit: 1}); len(got) < 500 {
			t.Errorf("%d releases, refused or not", len(got))
		}
	}
	check()
	closed(t, j)
	j = start(t, Config{Dir: dir, Bytes: MinBytes})
	defer closed(t, j)
	// The log is replayed, which writes nothing twice.
	before := j.Statistics()
	for _, e := range w.log[len(w.log)-100:] {
		j.Append(e)
	}
	check()
	if after := j.Statistics(); after.Lines != before.Lines {
		t.Errorf("a replay wrote %d lines", after.Lines-before.Lines)
	}
}

// Operations and refusals are synced apart, and a crash may take more of the one than of the other.
func TestLostRefusalsAreWrittenAgain(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	j := start(t, Config{Dir: dir})
	for i := range 10 {
		j.Append(w.cycle(i))
		j.Append(w.refused(i))
	}
	closed(t, j)
	name := segmentName(filepath.Join(dir, refusedDir), 1)
	info, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, info.Size()/2)
	}
	if err != nil {
		t.Fatal(err)
	}
	j = start(t, Config{Dir: dir})
	defer closed(t, j)
	for _, e := range w.log {
		j.Append(e)
	}
	same(t, "all", all(t, j, Query{Kind: Operation, Oldest: true}), what(projected(w.log), Query{Kind: Operation, Oldest: true}))
}

// A door that decides by itself is polled, too.
func TestPollingAtADoorIsToldOnce(t *testing.T) {
	j := start(t, Config{})
	defer closed(t, j)
	poll := func(actor string, token leasehold.Token) {
		j.Refused(Refusal{
			Origin: leasehold.Origin{Actor: actor, Door: "azure"}, Namespace: space, Verb: "acquire", Resource: "r", InTheWay: token,
			Outcome: leasehold.Held.String(),
		})
	}
	for range 3 {
		poll("ann", 1)
		poll("bob", 1)
	}
	poll("ann", 2)
	if got := all(t, j, Query{Kind: Operation}); len(got) != 3 {
		t.Errorf("%d lines, want 3", len(got))
	}
}
