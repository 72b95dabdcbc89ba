package tui

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/cli/follow"

	v1 "github.com/leasehold/leasehold/api/v1"
)

var update = flag.Bool("update", false, "write the screens of top that the tests compare with")

// noon is when the stories begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A sitting is somebody before a board, with a screen of 80 by 12 and a clock that
// only they move. What is shown goes into a file that people can read.
type sitting struct {
	*board
	t      *testing.T
	screen strings.Builder
}

func sit(t *testing.T) *sitting {
	t.Helper()
	s := &sitting{t: t, board: &board{server: "http://127.0.0.1:4653", namespace: "default", width: 80, height: 12,
		now: noon}}
	a := cli.New()
	a.Environ = nil
	a.Terminal = func(any) bool { return false }
	a.Now = func() time.Time { return s.now }
	s.app = a
	t.Setenv("TZ", "UTC")
	return s
}

// show adds what is on the screen now, without what only a terminal sees.
func (s *sitting) show(what string) {
	fmt.Fprintf(&s.screen, "== %s\n", what)
	lines := s.lines()
	if len(lines) != s.height {
		s.t.Errorf("%s: %d lines of %d", what, len(lines), s.height)
	}
	for _, line := range lines {
		plain := ansi.Strip(line)
		if w := ansi.StringWidth(plain); w > s.width {
			s.t.Errorf("%s: %q is %d wide, of %d", what, plain, w, s.width)
		}
		fmt.Fprintln(&s.screen, strings.TrimRight(plain, " "))
	}
}

// compare holds the screens to those that were there before.
func (s *sitting) compare(name string) {
	s.t.Helper()
	file := filepath.Join("testdata", "top", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(s.screen.String()), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := s.screen.String(); got != string(want) {
		s.t.Errorf("the screens are not those of %s (go test -update writes them; read the diff):\n%s", file, got)
	}
}

// press presses keys; one that is longer than a letter stands alone.
func (s *sitting) press(keys ...string) (want any) {
	for _, k := range keys {
		text := ""
		if len([]rune(k)) == 1 {
			text = k
		}
		if k == "space" {
			text = " "
		}
		want = s.update(keyMsg{k, text})
	}
	return want
}

func (s *sitting) types(text string) {
	for _, r := range text {
		s.press(string(r))
	}
}

func (s *sitting) pass(d time.Duration) any { return s.update(tickMsg{s.now.Add(d)}) }

func (s *sitting) see(resources ...v1.Resource) any {
	return s.update(newsMsg{follow.Update{Snapshot: &follow.Snapshot{Asked: s.now, Resources: resources}}})
}

func (s *sitting) lose(message string) {
	s.update(newsMsg{follow.Update{Lost: &leasehold.Error{Code: leasehold.Unavailable, Message: message}}})
}

// leased makes a resource that somebody holds since a while and for a while; 0 is
// for ever.
func leased(name, holder string, since, remaining time.Duration, reason string) v1.Resource {
	l := v1.Lease{Namespace: "default", Resource: name, ID: name + "-1", Holder: holder, Token: 7, State: "leased",
		Reason: reason, Acquired: &v1.Time{Time: noon.Add(-since)}}
	if remaining > 0 {
		ms := remaining.Milliseconds()
		l.RemainingMS, l.Expires = &ms, &v1.Time{Time: noon.Add(remaining)}
	}
	return v1.Resource{Namespace: "default", Resource: name, State: "leased", Capacity: 1, Used: 1,
		Holders: []v1.Lease{l}}
}

func waiting(n int, r v1.Resource) v1.Resource {
	r.Waiting = n
	return r
}

func office() []v1.Resource {
	return []v1.Resource{
		leased("db/migrate", "ann@laptop", 90*time.Second, 30*time.Second, "add an index"),
		waiting(2, leased("prod/deploy", "ci@build-7:881", 10*time.Minute, 5*time.Minute, "release 311")),
		leased("prod/freeze", "oscar", 26*time.Hour, 0, "until monday"),
		{Namespace: "default", Resource: "test/db", State: "expired", Capacity: 1, Holders: []v1.Lease{},
			Last: &v1.Ending{Holder: "bob", Token: 3, How: "expired", At: v1.Time{Time: noon}}},
	}
}

func TestTopShowsAndCountsDown(t *testing.T) {
	s := sit(t)
	s.show("before the first answer")
	s.see(office()...)
	s.show("what is held")
	s.pass(25 * time.Second)
	s.show("25 s later, nothing having been said")
	want := s.pass(6 * time.Second)
	s.show("the countdown is over and never goes below nothing")
	if _, ok := want.(wantList); !ok {
		t.Errorf("after the countdown it wants %#v, not the list", want)
	}
	if want := s.pass(100 * time.Millisecond); want != nil {
		t.Errorf("it asks again at once: %#v", want)
	}
	s.update(newsMsg{follow.Update{Event: &v1.Event{Kind: "ended", How: "expired", Resource: "db/migrate",
		Holder: "ann@laptop", Token: 7, At: v1.Time{Time: s.now}}}})
	s.see(office()[1:]...)
	s.show("it has ended")
	s.see()
	s.show("nothing is held")
	s.compare("countdown")
}

// After a restore a list full of leases looks healthy: the banner says that nothing is granted.
func TestTopShowsTheQuarantine(t *testing.T) {
	s := sit(t)
	left := v1.Duration(59 * time.Minute)
	s.update(newsMsg{follow.Update{Snapshot: &follow.Snapshot{Asked: s.now, Resources: office(),
		Quarantine: v1.Quarantine{Active: true, Remaining: &left}}}})
	s.pass(9 * time.Minute)
	if line := ansi.Strip(s.lines()[1]); !strings.HasPrefix(line, "QUARANTINE: nothing is granted for another 50m (leasehold cluster status)") {
		t.Errorf("the banner is %q", line)
	}
	s.see(office()...)
	if line := ansi.Strip(s.lines()[1]); strings.Contains(line, "QUARANTINE") {
		t.Errorf("it is over, and the banner is %q", line)
	}
}

func TestTopSortsAndFilters(t *testing.T) {
	s := sit(t)
	s.see(office()...)
	s.press("down")
	for _, by := range []string{"what remains", "waiting", "held longest", "name"} {
		s.press("s")
		s.show("sorted by " + by)
	}
	s.press("/")
	s.types("PROX")
	s.show("a filter that nothing passes")
	s.press("backspace")
	s.types("d")
	s.show("case does not count")
	s.press("enter", "down")
	s.show("the filter stays")
	s.press("/")
	s.types("zzz")
	s.press("esc")
	s.show("esc takes back what was typed")
	s.press("esc")
	s.show("and then the filter; the cursor is where it was")
	s.press("/")
	s.types("bob")
	s.press("enter")
	if s.press("enter") != nil {
		t.Error("bob has lost test/db, and holds nothing to show")
	}
	s.compare("filter")
}

func TestTopShowsOneResource(t *testing.T) {
	s := sit(t)
	s.see(office()...)
	want := s.press("down", "enter")
	if want != (wantLook{name: "prod/deploy"}) {
		t.Fatalf("it wants %#v", want)
	}
	s.show("before the answer")
	r := office()[1]
	for i, who := range []string{"cay", "dan"} {
		r.Queue = append(r.Queue, v1.Waiter{Position: i + 1, Holder: who, ID: who + "-1",
			Since: v1.Time{Time: noon.Add(-time.Minute)}, Until: &v1.Time{Time: noon.Add(time.Hour)}})
	}
	s.update(lookedMsg{name: "prod/deploy", resource: r, asked: s.now})
	s.show("holder and queue")
	s.pass(10 * time.Second)
	s.press("down", "down", "down", "down", "down", "down", "down", "down", "down", "down")
	s.show("10 s later, scrolled as far as it goes")
	if want := s.see(office()...); want != (wantLook{name: "prod/deploy"}) {
		t.Errorf("after a change it wants %#v", want)
	}
	s.press("esc")
	s.show("back")
	s.press("?")
	s.show("help")
	s.compare("details")
}

func TestTopBreaksWhatItShowed(t *testing.T) {
	s := sit(t)
	s.see(office()...)
	if want := s.press("down", "b"); want != (wantLook{name: "prod/deploy", toBreak: true}) {
		t.Fatalf("it wants %#v", want)
	}
	look := lookedMsg{name: "prod/deploy", toBreak: true, resource: office()[1], asked: s.now}
	s.height = 16
	s.update(look)
	s.show("what would end")
	s.press("enter")
	s.show("a reason is needed")
	s.types("ci hangs, ")
	s.types("quite")
	s.press("tab", "enter")
	s.show("are you sure?")
	if want := s.press("n"); want != nil {
		t.Errorf("no is %#v", want)
	}
	s.show("no")
	s.update(look)
	s.types("ci hangs")
	s.press("enter")
	want, ok := s.press("y").(wantBreak)
	if !ok || len(want.requests) != 1 || want.requests[0].Token != 7 || want.requests[0].ID != office()[1].Holders[0].ID ||
		want.requests[0].Reason != "ci hangs" || want.requests[0].Period != nil {
		t.Errorf("it wants %+v", want)
	}
	if again := s.press("y"); again != nil {
		t.Errorf("a second y breaks again: %#v", again)
	}
	s.show("on its way")
	breaking := office()[1].Holders[0]
	breaking.State = "breaking"
	s.update(brokeMsg{leases: []v1.Lease{breaking}})
	s.show("done")
	s.update(look)
	s.types("x")
	s.press("tab", "enter")
	if want, ok := s.press("y").(wantBreak); !ok || want.requests[0].Period == nil || *want.requests[0].Period != 0 {
		t.Errorf("at once is %+v", want)
	}
	s.update(brokeMsg{err: leasehold.ErrLost})
	s.show("somebody else has it")
	s.update(lookedMsg{name: "test/db", toBreak: true, resource: office()[3]})
	s.show("nothing to break")
	s.pass(noteTime)
	s.show("what was said goes away")
	s.compare("break")
}

// TestTopBreaksWhoWasChosen: of those who share a resource only the one loses who was chosen, and
// all of them only if that was said.
func TestTopBreaksWhoWasChosen(t *testing.T) {
	s := sit(t)
	s.see(office()...)
	s.height = 16
	pool := office()[1]
	pool.Resource, pool.Capacity, pool.Used, pool.Holders = "gpu/pool", 3, 3, nil
	for i, who := range []string{"ann", "bob", "ann"} {
		l := office()[1].Holders[0]
		l.Resource, l.Holder, l.ID, l.Token, l.Units = "gpu/pool", who, fmt.Sprint("g-", i), uint64(20+i), []string{fmt.Sprint("gpu", i)}
		pool.Holders = append(pool.Holders, l)
	}
	look := lookedMsg{name: "gpu/pool", toBreak: true, resource: pool, asked: s.now}
	s.update(look)
	s.show("whose?")
	s.press("down", "enter")
	s.show("bob's")
	s.types("hangs")
	s.press("tab", "enter")
	want, ok := s.press("y").(wantBreak)
	if !ok || len(want.requests) != 1 || want.requests[0].ID != "g-1" || want.requests[0].Token != 21 {
		t.Errorf("it wants %+v", want)
	}
	bobs := pool.Holders[1]
	bobs.State = "broken"
	s.update(brokeMsg{leases: []v1.Lease{bobs}})
	s.show("bob has lost")
	s.update(look)
	s.press("end", "enter")
	s.show("all of them")
	s.types("hangs")
	s.press("enter")
	s.show("all of them?")
	want, ok = s.press("y").(wantBreak)
	if !ok || len(want.requests) != 3 || want.requests[2].ID != "g-2" {
		t.Errorf("it wants %+v", want)
	}
	first := pool.Holders[0]
	first.State = "broken"
	s.update(brokeMsg{leases: []v1.Lease{first}, err: leasehold.ErrLost})
	s.show("two of them were over")
	s.update(look)
	s.press("esc")
	s.show("changed their mind")
	s.compare("whom")
}

func TestTopWithoutAServer(t *testing.T) {
	s := sit(t)
	s.lose("cannot reach the server at http://127.0.0.1:4653: connection refused")
	s.show("never seen")
	s.see(office()...)
	s.show("there it is")
	s.pass(5 * time.Second)
	s.lose("the server gave no answer")
	s.pass(10 * time.Second)
	s.lose("the server gave no answer, once more")
	s.show("10 s after it went: nothing pretends to be live")
	s.see(office()...)
	s.show("it is back")
	s.update(newsMsg{follow.Update{Lost: leasehold.ErrDenied}})
	if s.done == nil || !errors.Is(s.done(), leasehold.ErrDenied) {
		t.Error("it goes on although it may not")
	}
	s.compare("lost")
}

func TestTopOnSmallAndLargeScreens(t *testing.T) {
	s := sit(t)
	pool := leased("gpu/pool", "trainer", time.Hour, time.Hour, "night run")
	pool.Capacity, pool.Used, pool.Holding = 8, 5, 3
	s.see(append(office(), pool, leased("日本/資源", "東京の人", time.Minute, 8*time.Second, "\x1b[2J"))...)
	for _, size := range [][2]int{{120, 12}, {80, 12}, {60, 12}, {40, 8}, {20, 6}, {10, 3}, {1, 1}} {
		s.update(sizeMsg{size[0], size[1]})
		s.show(fmt.Sprintf("%d by %d", size[0], size[1]))
	}
	if s.pace() != time.Second {
		t.Errorf("it ticks every %v for what nobody sees", s.pace())
	}
	s.update(sizeMsg{80, 12})
	if s.pace() != 100*time.Millisecond {
		t.Errorf("it ticks every %v although 8 s are left of what is on the screen", s.pace())
	}
	s.compare("sizes")
}

// With ten thousand resources only what fits is drawn, and the cursor stays with its
// resource while others come and go.
func TestTopWithThousands(t *testing.T) {
	s := sit(t)
	var many []v1.Resource
	for i := range 10_000 {
		many = append(many, leased(fmt.Sprintf("r/%05d", i), "ann", time.Minute, time.Hour, ""))
	}
	s.see(many...)
	s.press("end")
	s.show("the last")
	s.press("pgup", "up")
	s.show("a screen and a row above it")
	s.see(many[5000:]...)
	s.show("half of them are gone")
	s.see(many[:100]...)
	s.show("that one too")
	s.press("home")
	s.show("the first")
	s.compare("thousands")
}

func TestTopEnds(t *testing.T) {
	for key, code := range map[string]int{"q": 0, "ctrl+c": 130} {
		s := sit(t)
		s.press(key)
		if s.done == nil || cli.ExitCode(s.done()) != code {
			t.Errorf("%s does not end it with %d", key, code)
		}
	}
	s := sit(t)
	s.see(office()...)
	s.press("/", "q")
	if s.done != nil {
		t.Error("a q in the filter ends it")
	}
}

// Without colours a state is a word and the cursor a sign.
func TestTopWithoutColours(t *testing.T) {
	for _, env := range []string{"NO_COLOR=1", "NO_COLOR="} {
		s := sit(t)
		s.app.Terminal = func(any) bool { return true }
		s.app.Environ = []string{env}
		s.see(office()...)
		s.lose("gone")
		s.see(office()...)
		if got := strings.Contains(strings.Join(s.lines(), ""), "\x1b[32m"); got == (env == "NO_COLOR=1") {
			t.Errorf("%s: colour is %v", env, got)
		}
	}
}

func BenchmarkTopWithThousands(b *testing.B) {
	a := cli.New()
	board := &board{app: a, width: 120, height: 50, now: noon}
	var many []v1.Resource
	for i := range 10_000 {
		many = append(many, leased(fmt.Sprintf("r/%05d", i), "ann", time.Minute, time.Hour, "why not"))
	}
	board.update(newsMsg{follow.Update{Snapshot: &follow.Snapshot{Asked: noon, Resources: many}}})
	for b.Loop() {
		board.lines()
	}
}
