package kernel_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

var update = flag.Bool("update", false, "rewrite what the stories in testdata say; read the difference")

// TestStories tells every story of testdata and compares what comes out with what
// is written there.
func TestStories(t *testing.T) {
	for _, file := range storyFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			written := readFile(t, file)
			told := tellStory(t, written, false)
			if *update {
				if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			compareStories(t, file, told, written)
		})
	}
}

// TestStoriesReloaded tells them again with the state frozen, taken apart and put
// together after every step: nobody may notice.
func TestStoriesReloaded(t *testing.T) {
	for _, file := range storyFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			written := readFile(t, file)
			compareStories(t, file, tellStory(t, written, true), written)
		})
	}
}

func storyFiles(t *testing.T) []string {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no stories: %v", err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "README.txt" })
}

func readFile(t *testing.T, file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func compareStories(t *testing.T, file, told, written string) {
	t.Helper()
	if told == written {
		return
	}
	is, was := strings.Split(told, "\n"), strings.Split(written, "\n")
	for i := range min(len(is), len(was)) {
		if is[i] != was[i] {
			t.Fatalf("%s:%d\n is told: %s\n written: %s\n(go test -update rewrites it)", file, i+1, is[i], was[i])
		}
	}
	t.Fatalf("%s: %d lines are told, %d are written", file, len(is), len(was))
}

// A teller walks through a story. Lines that begin with a blank are what was told
// before, and are told anew; all others stay as they are.
type teller struct {
	t      *testing.T
	state  *core.State
	now    time.Duration
	ahead  time.Duration // the wall clock is, of time
	reload bool          // after every step
	out    []string

	backup *core.State // nil: none was taken

	stamp    string // of the entry that is being read
	commands []core.Command

	asker  *access.Asker // of the commands that follow
	askers []*access.Asker
}

func tellStory(t *testing.T, story string, reload bool) string {
	teller := &teller{t: t, state: core.NewAt(core.NewestLevel), reload: reload}
	for i, line := range strings.Split(strings.TrimSuffix(story, "\n"), "\n") {
		if strings.HasPrefix(line, " ") {
			continue
		}
		if err := teller.line(line); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, line, err)
		}
	}
	if err := teller.apply(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(teller.out, "\n") + "\n"
}

func (t *teller) line(line string) error {
	first, rest, _ := strings.Cut(line, " ")
	if first == "and" {
		t.out = append(t.out, line)
		return t.read(rest)
	}
	// Only now is it known that no further command belongs to the entry.
	if err := t.apply(); err != nil {
		return err
	}
	t.out = append(t.out, line)
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
		return nil
	case first == "as":
		var err error
		t.asker, err = parseAsker(rest)
		return err
	case line == "---":
		t.state, t.now, t.backup, t.asker, t.ahead = core.NewAt(core.NewestLevel), 0, nil, nil, 0
		return nil
	case first == "wall":
		var err error
		t.ahead, err = time.ParseDuration(rest)
		return err
	case first[0] >= '0' && first[0] <= '9':
		t.stamp = first
		return t.read(rest)
	}
	return t.ask(line)
}

func (t *teller) say(format string, args ...any) {
	t.out = append(t.out, "  "+fmt.Sprintf(format, args...))
}

func (t *teller) read(line string) error {
	if line == "nothing" {
		return nil // an entry without a command, which moves time alone
	}
	c, err := parseCommand(line)
	t.commands, t.askers = append(t.commands, c), append(t.askers, t.proven())
	return err
}

// apply puts the entry that was read in the log, and tells what came of it: first
// what happened, then what each command was told.
func (t *teller) apply() error {
	if t.stamp == "" {
		return nil
	}
	now, err := time.ParseDuration(t.stamp)
	if err != nil {
		return err
	}
	commands, askers := t.commands, t.askers
	t.stamp, t.commands, t.askers = "", nil, nil

	before := render(t.state)
	result, err := t.state.Apply(stampOf(now), wallOf(now+t.ahead), commands, core.From{Askers: askers})
	if err != nil {
		t.say("the log stops: %s", withoutStamps(err))
		if render(t.state) != before {
			t.say("BUT something changed")
		}
		return nil
	}
	t.now = now
	t.tell(commands, result)
	return t.check()
}

func (t *teller) tell(commands []core.Command, result core.Result) {
	for _, e := range result.Events {
		t.say("%s", tellEvent(e))
	}
	for _, large := range result.Named {
		t.say("large value %s is named", writeLarge(&large))
	}
	for _, large := range result.Freed {
		t.say("large value %s is not named any more", writeLarge(&large))
	}
	answers := 0
	for i, answer := range result.Answers {
		if _, tick := commands[i].(*core.Tick); tick && reflect.DeepEqual(answer, core.Answer{}) {
			continue
		}
		answers++
		number := ""
		if len(commands) > 1 {
			number = strconv.Itoa(i+1) + ": "
		}
		t.say("%s%s", number, tellAnswer(answer, t.now))
	}
	if answers == 0 && len(result.Events) == 0 {
		t.say("nothing happens")
	}
}

func withoutStamps(err error) string {
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+2:]
}

func (t *teller) check() error {
	if t.reload {
		t.reloadState()
	}
	return t.state.Check()
}

func (t *teller) reloadState() {
	before := render(t.state)
	t.state = reloaded(t.t, t.state)
	if render(t.state) != before {
		t.say("BUT something changed")
	}
}

// ask reads the state without an entry in the log.
func (t *teller) ask(line string) error {
	p := newPhrase(line)
	passed := p.duration("passed")
	view, now := t.state.View(passed), t.now+passed
	switch p.verb {
	case "reload":
		t.reloadState()
	case "backup":
		t.backup = t.state.Freeze()
	case "restore":
		t.restore(p)
	case "show":
		for _, line := range tellStatus(view.Status(p.namespace(), p.word("resource"), 100), now) {
			t.say("%s", line)
		}
	case "who":
		t.say("%s", tellAnswer(view.Claim(p.namespace(), p.word("lease id")), now))
	case "session":
		session, failure := view.Session(p.namespace(), p.word("session"))
		t.say("%s", tellAnswer(core.Answer{Session: &session, Err: failure}, now))
	case "definition":
		if d, ok := view.Definition(p.namespace(), p.word("path")); ok {
			t.say("%s", tellDefinition(&d))
		} else {
			t.say("none")
		}
	case "list":
		t.list(view, p)
	case "history":
		t.history(view.History(p.namespace()), p)
	case "get":
		record, failure := view.Record(p.namespace(), p.word("path"), leasehold.Revision(p.number("revision")))
		if failure != nil {
			t.say("%s", tellError(failure))
			break
		}
		t.say("%s: %s", tellValue(record.Value, record.Large), tellRecord(record))
	case "versions":
		t.versions(view, p)
	case "version":
		v, failure := view.Version(p.namespace(), p.word("path"), leasehold.Revision(p.number("revision")))
		if failure != nil {
			t.say("%s", tellError(failure))
			break
		}
		t.say("%s", tellVersion(v))
	case "larges":
		t.larges()
	case "records":
		t.records(view, p)
	case "reservations":
		t.reservations(view, p)
	case "due":
		t.due()
	case "alarms":
		t.alarms(view, p)
	case "advice":
		advice := view.Advice(p.namespace(), p.word("resource"))
		t.say("ttl %s", short(advice.TTL))
		for _, reason := range advice.Reasons {
			t.say("  %s", reason)
		}
	case "count":
		n := view.Counts()
		text := fmt.Sprintf("%d namespaces, %d resources, %d leases, %d waiters, %d sessions", n.Namespaces, n.Resources, n.Leases, n.Waiters, n.Sessions)
		if n.Records > 0 {
			text += fmt.Sprintf(", %d records", n.Records)
		}
		if n.Versions > 0 || n.Larges > 0 {
			text += fmt.Sprintf(", %d versions, %d large values of %d bytes", n.Versions, n.Larges, n.LargeBytes)
		}
		t.say("%s", text)
	case "caps":
		allowed, used := view.Caps()
		t.say("%d of %d leases, %d of %d sessions, %d of %d waiters, %d of %d namespaces", used.Leases, allowed.Leases,
			used.Sessions, allowed.Sessions, used.Waiters, allowed.Waiters, used.Namespaces, allowed.Namespaces)
	case "policy":
		t.policy(view.Policy())
	case "owner":
		t.owner(p, view)
	case "leader":
		lead := t.state.Lead()
		t.say("node %d, boot %s, offset %s", lead.Node, quote(lead.Boot), short(lead.Offset))
	default:
		p.wrong("there is no command and no question %q", p.verb)
	}
	return p.end()
}

func (t *teller) records(view core.View, p *phrase) {
	q := core.RecordQuery{
		From: p.option("from", ""), To: p.option("to", ""), Most: int(p.number("most")), KeysOnly: p.flag("keys"), Count: p.flag("count"),
		Revision: leasehold.Revision(p.number("revision")),
	}
	if prefix := p.option("prefix", ""); prefix != "" {
		q.From, q.To = prefix, core.PrefixEnd(prefix)
	}
	page, failure := view.Records(p.namespace(), q)
	if failure != nil {
		t.say("%s", tellError(failure))
		return
	}
	t.say("%s", tellPage(page))
}

func (t *teller) versions(view core.View, p *phrase) {
	namespace, path := p.namespace(), p.word("path")
	list, next := view.Versions(namespace, path, leasehold.Revision(p.number("before")), int(p.number("most")))
	for _, v := range list {
		t.say("%s", tellVersion(v))
	}
	if len(list) == 0 {
		t.say("none")
	}
	if next != 0 {
		t.say("more before %d", next)
	}
	if keeps := view.Keeps(namespace, path); keeps != 0 {
		t.say("keeps %d", keeps)
	}
}

func (t *teller) larges() {
	text := ""
	t.state.Larges(func(l leasehold.Large) bool {
		text += " " + writeLarge(&l) + strange(!t.state.NamesLarge(l.SHA256), "nothing names it")
		return true
	})
	t.say("named:%s", text)
}

func (t *teller) list(view core.View, p *phrase) {
	most := int(p.number("most"))
	if most == 0 {
		most = 100
	}
	list, next := view.List(p.namespace(), p.option("prefix", ""), p.option("after", ""), most, p.flag("all"))
	for _, status := range list {
		t.say("%s", tellStatus(status, t.now)[0])
	}
	if next != "" {
		t.say("more after %s", next)
	}
}

func (t *teller) alarms(view core.View, p *phrase) {
	q := core.AlarmQuery{Prefix: p.option("prefix", ""), Before: p.number("before"), Most: int(p.number("most"))}
	if kind := p.option("kind", ""); kind != "" {
		if q.Kind = leasehold.AlarmKindOf(kind); q.Kind == 0 {
			p.wrong("there is no alarm %q", kind)
		}
	}
	if q.Most == 0 {
		q.Most = 100
	}
	list, next := view.Alarms(p.namespace(), q)
	for _, a := range list {
		again := ""
		if a.Count > 1 {
			again = fmt.Sprintf(", %d times, the last at %s", a.Count, clock(a.Last))
		}
		t.say("%v since %s%s: %s", a.Kind, clock(a.Since), again, a.Text)
	}
	if len(list) == 0 {
		t.say("none")
	}
	if next != 0 {
		t.say("more before %d", next)
	}
}

func (t *teller) history(history core.History, p *phrase) {
	var revision, n int
	if after := p.option("after", "0.0"); after != "" {
		if _, err := fmt.Sscanf(after, "%d.%d", &revision, &n); err != nil {
			p.wrong("after=%s is not of the form revision.n", after)
		}
	}
	events, known := history.After(leasehold.Revision(revision), uint32(n))
	if !known {
		t.say("some of it is gone")
	}
	for _, e := range events {
		t.say("%s", tellEvent(e))
	}
	t.say("revision %d", history.Revision)
}

// trulyDue returns when time alone next changes something. A state knows only a moment
// at or before that, until it has come.
func trulyDue(s *core.State) (core.Time, bool) {
	for {
		at, ok := s.Due()
		if !ok || s.DueBy(at) {
			return at, ok
		}
	}
}

func (t *teller) due() {
	at, ok := trulyDue(t.state)
	if !ok {
		t.say("nothing is due, ever")
		return
	}
	t.say("%s", short(time.Duration(at-start)))
}
