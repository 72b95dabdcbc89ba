package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// A judge says who may do what in a random log, in the dumbest way that works: it remembers from events alone whose
// things are, and has the policy as a plain table. It shares no code with the core.
type judge struct {
	rules    []judgeRule
	claims   map[named]*judgedThing // also those that ended
	sessions map[named]*judgedThing
	records  map[named]string // whose
	plans    map[named]string // whose reservations are

	wide bool // what is not known of a command is not judged
}

type judgedThing struct {
	owner, path string
	over        bool
}

type judgeRule struct {
	who, namespace, prefix string
	any, own               string // verbs between commas
}

const (
	judgeSees  = "read,list,watch,record-read,monitor"
	judgeTakes = "acquire,share,ask,record-write"
	judgeKeeps = "renew,release,change,break,move"
)

var judgeRules = []judgeRule{
	{"root", "*", "", judgeSees + "," + judgeTakes + "," + judgeKeeps + ",acknowledge,define,admin,foreign", ""},
	{"op", "*", "", judgeSees + "," + judgeTakes + "," + judgeKeeps + ",acknowledge,define,foreign", ""},
	{"vic", "*", "", judgeSees, ""},
	{"bob", "green", "", judgeSees + "," + judgeTakes, judgeKeeps},
	{"bob", "default", "scanner", judgeSees + "," + judgeTakes, judgeKeeps},
	{"ann", "default", "pool/", judgeSees + "," + judgeTakes, judgeKeeps},
	{"ann", "default", "printer", judgeSees + "," + judgeTakes, judgeKeeps},
	{"own", "default", "", "acquire,share", "read,renew,release,change,break,move,ask,record-read,record-write"},
}

// judgePolicy is the same as a change of access. Without ann's bindings she may do nothing.
func judgePolicy() *core.ChangeAccess {
	c := &core.ChangeAccess{}
	for i, who := range []string{"root", "op", "vic", "bob", "ann", "own"} {
		c.Put.Tokens = append(c.Put.Tokens, &access.Token{ID: "t-" + who, Hash: fmt.Sprintf("%032d", i), Principal: who})
	}
	p := newPhrase("")
	for i, r := range judgeRules {
		name := fmt.Sprint("r", i)
		c.Put.Roles = append(c.Put.Roles, &access.Role{Name: name, Any: p.verbs(r.any), Own: p.verbs(r.own)})
		c.Put.Bindings = append(c.Put.Bindings, &access.Binding{Name: name, Role: name, Principal: r.who, Namespace: r.namespace, Prefix: r.prefix})
	}
	if p.problem != nil {
		panic(p.problem)
	}
	return c
}

// may reports whether somebody may do something to what lies at a path and belongs to somebody.
func (j *judge) may(who, verb, namespace, path, owner string) bool {
	return slices.ContainsFunc(j.rules, func(r judgeRule) bool {
		here := r.namespace == "*" || r.namespace == namespace
		below := r.prefix == "" || r.prefix == path || strings.HasPrefix(path, strings.TrimSuffix(r.prefix, "/")+"/") && path != r.prefix
		has := func(list string) bool { return slices.Contains(strings.Split(list, ","), verb) }
		return r.who == who && here && below && (has(r.any) || has(r.own) && owner == who)
	})
}

// mayAll is may for everything in a namespace.
func (j *judge) mayAll(who, verb, namespace string) bool {
	return slices.ContainsFunc(j.rules, func(r judgeRule) bool {
		return r.who == who && (r.namespace == "*" || r.namespace == namespace) && r.prefix == "" && slices.Contains(strings.Split(r.any, ","), verb)
	})
}

func (j *judge) somewhere(who, verb, namespace string) bool {
	return slices.ContainsFunc(j.rules, func(r judgeRule) bool {
		return r.who == who && (r.namespace == "*" || r.namespace == namespace) && slices.Contains(strings.Split(r.any+","+r.own, ","), verb)
	})
}

// knows reports whether somebody may do anything in a namespace.
func (j *judge) knows(who, namespace string) bool {
	return slices.ContainsFunc(j.rules, func(r judgeRule) bool {
		return r.who == who && (r.namespace == "*" || r.namespace == namespace)
	})
}

// verdicts are the codes with which a command of somebody must be answered; none if it may go on.
func (j *judge) verdicts(who string, c core.Command) (codes []leasehold.Code) {
	say := func(code leasehold.Code) { codes = append(codes, code) }
	// What ended may be forgotten by now, and then nothing is known of it.
	perhaps := func(t *judgedThing) {
		if t.over {
			say(0)
		}
	}
	path := func(verb, namespace, path, owner string) {
		if !j.may(who, verb, namespace, path, owner) {
			say(leasehold.Denied)
		}
	}
	claim := func(verb, namespace, id string) {
		t := j.claims[named{namespace, id}]
		switch {
		case t == nil || j.may(who, verb, namespace, t.path, t.owner):
		case !j.may(who, "read", namespace, t.path, t.owner) && t.owner != who:
			say(leasehold.NotFound)
			perhaps(t)
		case !t.over:
			say(leasehold.Denied)
		}
	}
	use := func(namespace, id string) {
		if t := j.sessions[named{namespace, id}]; id != "" && t != nil && t.owner != who && !j.mayAll(who, "renew", namespace) {
			say(leasehold.NotFound)
			perhaps(t)
		}
	}
	session := func(verb, namespace, id string) {
		t := j.sessions[named{namespace, id}]
		switch {
		case t == nil || j.mayAll(who, verb, namespace) || t.owner == who && j.somewhere(who, verb, namespace):
		case j.mayAll(who, "read", namespace) || t.owner == who && j.somewhere(who, "read", namespace):
			say(leasehold.Denied)
			perhaps(t)
		default:
			say(leasehold.NotFound)
			perhaps(t)
		}
	}
	record := func(verb, namespace, at string) {
		owner, known := j.records[named{namespace, at}]
		if !known {
			owner = who
		}
		path(verb, namespace, at, owner)
	}
	span := func(verb, namespace, from, to string, isRange bool) {
		switch {
		case !isRange:
			record(verb, namespace, from)
		case j.mayAll(who, verb, namespace):
			for _, foreign := range []string{"terraform/state", "azure/a", "azure.b/c"} {
				if from <= foreign && (to == "" || foreign < to) && !j.mayAll(who, "foreign", namespace) {
					say(leasehold.Denied)
				}
			}
		case strings.HasPrefix(from, "pool/") && to != "" && to <= "pool0" && j.may(who, verb, namespace, "pool/x", ""):
		default:
			say(leasehold.Denied)
		}
	}
	acquire := func(c *core.Acquire) {
		for _, item := range c.Items() {
			verb := "acquire"
			if item.Slots != 0 {
				verb = "share"
			}
			path(verb, c.Namespace, item.Resource, "")
			if t := j.claims[named{c.Namespace, item.ID}]; t != nil && !t.over && t.owner != who {
				say(leasehold.Refused)
			}
		}
		use(c.Namespace, c.Session)
	}
	if r := requestOf(c); r.Session != "" {
		if closing, ok := c.(*core.CloseSession); !ok || closing.ID != r.Session {
			use(namespaceOf(c), r.Session)
		}
	}
	defer func() {
		// An id may have been used that no event told of.
		if _, txn := c.(*core.Txn); len(codes) > 0 && (txn || reflect.TypeOf(c) == reflect.TypeFor[*core.Acquire]()) {
			codes = append(codes, leasehold.Refused)
		}
	}()
	switch c := c.(type) {
	case *core.OpenSession:
		if !j.somewhere(who, "acquire", c.Namespace) && !j.somewhere(who, "share", c.Namespace) && !j.somewhere(who, "record-write", c.Namespace) {
			say(leasehold.Denied)
		}
		if t := j.sessions[named{c.Namespace, c.ID}]; t != nil && !t.over && t.owner != who {
			say(leasehold.Refused)
		}
	case *core.RenewSession:
		session("renew", c.Namespace, c.ID)
	case *core.CloseSession:
		session("release", c.Namespace, c.ID)
	case *core.Acquire:
		acquire(c)
	case *core.Renew:
		claim("renew", c.Namespace, c.ID)
	case *core.Release:
		claim("release", c.Namespace, c.ID)
	case *core.Change:
		claim("change", c.Namespace, c.ID)
	case *core.Break:
		if c.ID != "" {
			claim("break", c.Namespace, c.ID)
		} else {
			path("break", c.Namespace, c.Resource, who)
		}
	case *core.Move:
		claim("move", c.Namespace, c.ID)
	case *core.Ask:
		path("ask", c.Namespace, c.Resource, who)
	case *core.PutRecord:
		if c.IfAbsent || c.IfRevision != 0 || c.From != 0 {
			record("record-read", c.Namespace, c.Path)
		}
		record("record-write", c.Namespace, c.Path)
		use(c.Namespace, c.Session)
	case *core.DeleteRecord:
		if c.IfRevision != 0 {
			record("record-read", c.Namespace, c.Path)
		}
		span("record-write", c.Namespace, c.Path, c.To, c.Range)
	case *core.Define:
		path("define", c.Namespace, c.Definition.Path, "")
	case *core.Undefine:
		path("define", c.Namespace, c.Path, "")
	case *core.SetUnits:
		path("define", c.Namespace, c.Resource, "")
	case *core.Drain:
		path("define", c.Namespace, c.Resource, "")
	case *core.PutTask:
		record("record-write", c.Namespace, c.Path)
	case *core.ReportUse:
		path("define", c.Namespace, c.Resource, "")
	case *core.Reserve:
		verb := "acquire"
		if c.Slots != 0 {
			verb = "share"
		}
		path(verb, c.Namespace, c.Resource, "")
	case *core.Acknowledge:
		path("acknowledge", c.Namespace, c.Resource, "")
	case *core.AcknowledgeAlarm:
		path("acknowledge", c.Namespace, c.Resource, "")
	case *core.SetCaps, *core.EndQuarantine, *core.RaiseTokens, *core.ChangeAccess:
		path("admin", "*", "", "")
	case *core.Txn:
		if !j.knows(who, c.Namespace) {
			say(leasehold.Denied)
		}
		for _, i := range c.If {
			if i.What < core.LeaseID {
				record("record-read", c.Namespace, i.Path)
			} else if !j.may(who, "read", c.Namespace, i.Path, who) {
				say(leasehold.Denied)
			} else if !j.may(who, "read", c.Namespace, i.Path, "") && j.anyOther(who, c.Namespace, i.Path) {
				say(leasehold.Denied) // or another, if that is not the oldest
				say(0)
			}
		}
		for _, o := range slices.Concat(c.Then, c.Else) {
			switch o.Do {
			case core.Put:
				if o.From != 0 {
					record("record-read", c.Namespace, o.Path)
				}
				record("record-write", c.Namespace, o.Path)
				use(c.Namespace, o.Session)
			case core.Delete:
				span("record-write", c.Namespace, o.Path, o.To, o.Range)
			case core.Get:
				span("record-read", c.Namespace, o.Path, o.To, o.Range)
			case core.AcquireLease:
				acquire(o.Acquire)
			case core.ReleaseLease:
				before := len(codes)
				claim("release", c.Namespace, o.ID)
				if slices.Contains(codes[before:], leasehold.NotFound) {
					codes = codes[:before] // the list may not be done, and then nobody looks for it
				}
			}
		}
	}
	return codes
}

// widely is what is surely said to a command of a log of everything: nothing is known of records that stand for leases,
// nor of tasks. Somebody else's reservation is as one that is unknown.
func (j *judge) widely(who string, c core.Command, verdicts []leasehold.Code) []leasehold.Code {
	switch c := c.(type) {
	case *core.Acquire:
		owner, known := j.plans[named{c.Namespace, c.Reservation}]
		switch {
		case c.Reservation != "" && known && owner != who:
			return append(verdicts, leasehold.NotFound, leasehold.Denied, leasehold.Refused)
		case c.Reservation == "" && !c.Task:
			return verdicts
		}
	case *core.SetUnits, *core.Drain, *core.ReportUse, *core.Reserve, *core.Define, *core.Undefine:
		return verdicts
	}
	return nil
}

// anyOther reports whether somebody else has something of a resource.
func (j *judge) anyOther(who, namespace, path string) bool {
	for at, t := range j.claims {
		if at.namespace == namespace && t.path == path && !t.over && t.owner != who {
			return true
		}
	}
	return false
}

func namespaceOf(c core.Command) string {
	return reflect.ValueOf(c).Elem().FieldByName("Namespace").String()
}

func requestOf(c core.Command) core.Request {
	if f := reflect.ValueOf(c).Elem().FieldByName("Request"); f.IsValid() {
		return f.Interface().(core.Request)
	}
	return core.Request{}
}

// learn remembers from the events of a command whose things are.
func (j *judge) learn(who string, c core.Command, events []*leasehold.Event) {
	for _, e := range events {
		id, session := named{e.Namespace, e.ID}, named{e.Namespace, e.Session}
		switch e.Kind {
		case leasehold.Queued, leasehold.Acquired:
			if t := j.claims[id]; t == nil || t.over {
				j.claims[id] = &judgedThing{owner: who, path: e.Resource}
			}
		case leasehold.Changed:
			if change := c.(*core.Change); change.NewID != "" && change.NewID != change.ID {
				old := j.claims[named{e.Namespace, change.ID}]
				j.claims[id] = &judgedThing{owner: old.owner, path: old.path}
				old.over = true
			}
		case leasehold.Ended, leasehold.Left:
			j.claims[id].over = true
		case leasehold.SessionOpened:
			j.sessions[session] = &judgedThing{owner: who}
		case leasehold.SessionEnded:
			j.sessions[session].over = true
		case leasehold.RecordPut:
			if at := (named{e.Namespace, e.Resource}); e.Previous == nil {
				j.records[at] = who
			}
		case leasehold.RecordDeleted:
			delete(j.records, named{e.Namespace, e.Resource})
		case leasehold.Reserved:
			if r, ok := c.(*core.Reserve); ok && r.ID == e.ID {
				j.plans[id] = who
			}
		}
	}
}

// TestNobodyDoesWhatTheyMayNot gives the commands of random logs to several people, while the policy changes now and then.
// What the judge forbids must be refused as it says, and nothing may happen by it; what it allows must not be denied.
// Replicas, of which one is put together anew now and then, must agree.
func TestNobodyDoesWhatTheyMayNot(t *testing.T) {
	forEachSeed(t, testing.Short(), func(seed uint64, j journal) error { return againstJudge(t, seed, j, false) })
}

// The same for logs of everything: of what the judge does not know it only says nothing.
func TestNobodyDoesWhatTheyMayNotAnywhere(t *testing.T) {
	forEachLog(t, max(1, *seeds/4), func(seed uint64) journal {
		w := &writer{pick: seeded(seed), spent: map[named]uint64{}, wide: true}
		return w.journal(*length)
	}, func(seed uint64, j journal) error { return againstJudge(t, seed, j, true) })
}

func againstJudge(t *testing.T, seed uint64, log journal, wide bool) error {
	chance := rand.New(rand.NewPCG(seed, 4))
	one, two := core.NewAt(core.NewestLevel), core.NewAt(core.NewestLevel)
	j := &judge{rules: judgeRules, claims: map[named]*judgedThing{}, sessions: map[named]*judgedThing{}, records: map[named]string{},
		plans: map[named]string{}, wide: wide}
	people := map[string]*access.Asker{}
	for _, r := range judgeRules {
		people[r.who] = &access.Asker{Principal: r.who, Token: "t-" + r.who}
	}
	begin := judgePolicy()
	for _, state := range []*core.State{one, two} {
		if result, err := state.Apply(stampOf(0), wallOf(0), []core.Command{begin}); err != nil || result.Answers[0].Err != nil {
			return fmt.Errorf("%v %v", err, result.Answers)
		}
	}
	for _, e := range log {
		for _, c := range e.commands {
			who := []string{"root", "op", "op", "vic", "bob", "bob", "ann", "ann", "ann", "own", "own", ""}[chance.IntN(12)]
			from := core.From{Askers: []*access.Asker{people[who]}}
			verdicts := j.verdicts(who, c)
			if wide {
				verdicts = j.widely(who, c, verdicts)
			}
			result, err := one.Apply(stampOf(e.stamp), wallOf(e.stamp), []core.Command{c}, from)
			if err != nil {
				return err
			}
			again, err := two.Apply(stampOf(e.stamp), wallOf(e.stamp), []core.Command{c}, from)
			if err != nil || !reflect.DeepEqual(result, again) {
				return fmt.Errorf("at %v, %s: replicas differ (%v)", e.stamp, writeCommand(c), err)
			}
			if wide {
				again.Events = nil // the calendar may have done something, whatever the command was answered
			}
			if wrong := judged(who, c, verdicts, &again); wrong != "" && !(wide && len(verdicts) == 0) {
				return fmt.Errorf("at %v, %s by %q: %s, expected %v", e.stamp, writeCommand(c), who, wrong, verdicts)
			}
			j.learn(who, c, result.Events)
		}
		if chance.IntN(50) == 0 {
			two = reloaded(t, two)
		}
		if chance.IntN(40) == 0 {
			if err := j.toggle(e, one, two); err != nil {
				return err
			}
		}
	}
	if render(one) != render(two) {
		return fmt.Errorf("at the end the replicas have\n%s\n%s", render(one), render(two))
	}
	return one.Check()
}

// toggle takes the bindings of ann away, or gives them back.
func (j *judge) toggle(e entry, states ...*core.State) error {
	c := &core.ChangeAccess{Remove: access.Keys{Bindings: []string{"r5", "r6"}}}
	if len(j.rules) < len(judgeRules) {
		c = judgePolicy()
		j.rules = judgeRules
	} else {
		j.rules = slices.DeleteFunc(slices.Clone(judgeRules), func(r judgeRule) bool { return r.who == "ann" })
	}
	for _, state := range states {
		result, err := state.Apply(stampOf(e.stamp), wallOf(e.stamp), []core.Command{c}, core.From{Askers: []*access.Asker{{Principal: "root", Token: "t-root"}}})
		if err != nil || result.Answers[0].Err != nil {
			return fmt.Errorf("%v %v", err, result.Answers)
		}
	}
	return nil
}

// judged says what is wrong with the answer to a command; empty if nothing is.
func judged(who string, c core.Command, verdicts []leasehold.Code, result *core.Result) string {
	failure := result.Answers[0].Err
	switch c.(type) {
	case *core.Tick, *core.Lead:
		return ""
	}
	release, withdraws := c.(*core.Release)
	withdraws = withdraws && release.Withdraw
	switch {
	case failure != nil && (failure.Code == leasehold.Invalid || failure.Code == leasehold.Unavailable):
		return ""
	case who == "":
		if failure == nil || failure.Code != leasehold.Denied || len(result.Events) > 0 {
			return fmt.Sprintf("nobody was answered %v", failure)
		}
	case len(verdicts) == 0 && failure != nil && failure.Code == leasehold.Denied && !perLease(c):
		return failure.Message
	case len(verdicts) > 0 && !slices.Contains(verdicts, 0):
		if failure == nil && !withdraws || failure != nil && !slices.Contains(verdicts, failure.Code) || len(result.Events) > 0 {
			return fmt.Sprintf("%v, and %d things happened", failure, len(result.Events))
		}
	}
	return ""
}

// perLease reports whether a command names a path, and each lease there is judged when it is found.
func perLease(c core.Command) bool {
	switch c := c.(type) {
	case *core.Break:
		return c.ID == ""
	case *core.Ask:
		return true
	}
	return false
}
