package access

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func policy(bindings ...*Binding) *Policy {
	var p *Policy
	for i, b := range bindings {
		if b.Name == "" {
			b.Name = fmt.Sprint(i)
		}
	}
	return p.With(Keys{}, Items{Bindings: bindings})
}

// proving adds a certificate rule for each of some principals, which puts it into all groups that something is bound to.
func (p *Policy) proving(principals ...string) *Policy {
	var put Items
	var groups []string
	for _, b := range p.Items().Bindings {
		if b.Group != "" && !slices.Contains(groups, b.Group) {
			groups = append(groups, b.Group)
		}
	}
	for _, name := range principals {
		put.Certificates = append(put.Certificates, &Certificate{Name: name, SAN: "dns:" + name, Principal: name, Groups: groups})
	}
	return p.With(Keys{}, put)
}

func TestNothingIsAllowedThatNoBindingAllows(t *testing.T) {
	p := policy(
		&Binding{Role: "member", Group: "a", Namespace: "default", Prefix: "a/"},
		&Binding{Role: "viewer", Principal: "ann", Namespace: "default", Prefix: "b"},
		&Binding{Role: "operator", Principal: "op", Namespace: "*"},
		&Binding{Role: "member", Principal: "bot", Namespace: "default", Prefix: "c/", Holders: "bots"},
	).proving("ann", "op", "bot")
	ann := p.Compile(&Asker{Principal: "ann", Groups: []string{"a"}})
	op, bot := p.Compile(&Asker{Principal: "op"}), p.Compile(&Asker{Principal: "bot"})
	mine, ours := &Owner{Principal: "ann"}, &Owner{Principal: "bob", Group: "a"}
	others := &Owner{Principal: "bob"}
	for _, c := range []struct {
		who   *Permit
		verb  Verb
		space string
		path  string
		owner *Owner
		want  bool
	}{
		{ann, Acquire, "default", "a/x", nil, true},
		{ann, Acquire, "default", "a", nil, false},
		{ann, Acquire, "default", "ab/x", nil, false},
		{ann, Acquire, "other", "a/x", nil, false},
		{ann, Break, "default", "a/x", mine, true},
		{ann, Break, "default", "a/x", ours, true},
		{ann, Break, "default", "a/x", others, false},
		{ann, Break, "default", "a/x", nil, false},
		{ann, Read, "default", "b", nil, true},
		{ann, Read, "default", "b/deep/er", nil, true},
		{ann, Read, "default", "bc", nil, false},
		{ann, Acquire, "default", "b", nil, false},
		{ann, RecordWrite, "default", ".runs/a/x", nil, true},
		{ann, RecordRead, "default", ".runs/b/deep", nil, true},
		{ann, RecordWrite, "default", ".runs/b", nil, false},
		{ann, RecordRead, "default", ".runs/c/x", nil, false},
		{ann, RecordRead, "default", ".runs/", nil, false},
		{ann, RecordRead, "default", ".runs", nil, false},
		{ann, RecordRead, "default", "runs/a/x", nil, false},
		{ann, RecordRead, "default", ".runs/.runs/a/x", nil, false},
		{ann, RecordRead, "other", ".runs/a/x", nil, false},
		{ann, Read, "default", ".runs/a/x", nil, false},
		{ann, Acquire, "default", ".runs/a/x", nil, false},
		{op, Break, "default", "a/x", mine, true},
		{op, Break, "any", "thing", nil, true},
		{op, Admin, "any", "thing", nil, false},
		{p.Compile(nil), Read, "default", "a/x", nil, false},
		{nil, Admin, "any", "thing", nil, true},
	} {
		if got := c.who.May(c.verb, c.space, c.path, c.owner); got != c.want {
			t.Errorf("may %v %s %s of %v: %v", c.verb, c.space, c.path, c.owner, got)
		}
		if c.who != nil && c.owner == nil && c.want != (len(p.Why(c.who.Asker, c.verb, c.space, c.path)) > 0) &&
			(c.verb == RecordRead || c.verb == RecordWrite) {
			t.Errorf("why %v %s %s says otherwise", c.verb, c.space, c.path)
		}
	}
	if bot.MayHold(Acquire, "default", "c/x", "robots", nil) || !bot.MayHold(Acquire, "default", "c/x", "bots/1", nil) {
		t.Error("a holder name that is not under bots was allowed, or one that is was not")
	}
	if bot.May(Acquire, "default", "c/x", nil) {
		t.Error("an acquire whose holder was not looked at was allowed")
	}
}

func TestAPrefixHasTheRunsOfItsJobs(t *testing.T) {
	p := policy(&Binding{Role: "member", Group: "a", Namespace: "default", Prefix: "a/"}).proving("ann")
	ann := p.Compile(&Asker{Principal: "ann", Groups: []string{"a"}})
	if !ann.MaySpan(RecordRead, "default", ".runs/a/x", ".runs/a/x\x00") {
		t.Error("it may not read the record of a job's runs as a range")
	}
	if got := fmt.Sprint(ann.Parts(RecordRead, "default", "")); got != "[{.runs/a/ false} {a/ false}]" {
		t.Error("it may read records in", got)
	}
	if got := fmt.Sprint(ann.Parts(Acquire, "default", "")); got != "[{a/ false}]" {
		t.Error("it may acquire in", got)
	}
}

// Azure's clients know nothing of the places where the parts of a blob are.
func TestAPrefixHasThePartsOfItsBlobs(t *testing.T) {
	who := &Asker{Principal: "azure:prod"}
	for _, c := range []struct {
		prefix, path string
		verb         Verb
		want         bool
	}{
		{"azure", "azure.blobs/prod/box/x", RecordWrite, true},
		{"azure/", "azure.past/prod/box/x?1", RecordRead, true},
		{"azure/prod", "azure.lists/prod/box/x", RecordWrite, true},
		{"azure/prod", "azure.lists/production/box/x", RecordRead, false},
		{"azure/prod/box/", "azure.blocks/prod/box/x?1", RecordWrite, true},
		{"azure/prod/box/", "azure.blocks/prod/other/x?1", RecordRead, false},
		{"azure/prod/box/", "azure.blocks/prod/box/x?1", Foreign, false},
		{"azure/prod/box/", "azure.blobs/prod/box/x", Acquire, false},
		{"azure/prod/box/d%25/", "azure.snapshots/prod/box/d%25/x?1", RecordRead, false}, // of d%/x
		{"azure/prod/box/d%/", "azure.snapshots/prod/box/d%25/x?1", RecordRead, true},
		{"azure.blobs/prod/", "azure.blocks/prod/box/x?1", RecordRead, false},
		{"azures/", "azure.blobs/prod/box/x", RecordRead, false},
	} {
		p := policy(&Binding{Role: "member", Principal: who.Principal, Namespace: "default", Prefix: c.prefix})
		if got := p.Compile(who).May(c.verb, "default", c.path, nil); got != c.want {
			t.Errorf("with %s, may %v %s: %v", c.prefix, c.verb, c.path, got)
		}
		if why := p.Why(who, c.verb, "default", c.path); (len(why) > 0) != c.want {
			t.Errorf("with %s, why %v %s says otherwise", c.prefix, c.verb, c.path)
		}
	}
}

func TestRangesAreCoveredAsAWhole(t *testing.T) {
	p := policy(&Binding{Role: "member", Principal: "ann", Namespace: "default", Prefix: "a/"}).proving("ann").
		Compile(&Asker{Principal: "ann"})
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"a/", "a0", true}, {"a/b", "a/c", true}, {"a/", "", false}, {"a", "a0", false},
		{"a/", "a1", false}, {"", "", false},
	} {
		if got := p.MaySpan(RecordWrite, "default", c.from, c.to); got != c.want {
			t.Errorf("from %q to %q: %v", c.from, c.to, got)
		}
	}
}

func TestARevokedTokenMayNothing(t *testing.T) {
	p := policy(&Binding{Role: "admin", Principal: "ann", Namespace: "*"})
	with := p.With(Keys{}, Items{Tokens: []*Token{{ID: "t", Hash: strings.Repeat("h", 32), Principal: "ann"}}})
	asker := &Asker{Principal: "ann", Token: "t"}
	if !with.Compile(asker).MayCluster(Admin) {
		t.Error("a token that is there may nothing")
	}
	without := with.With(Keys{Tokens: []string{"t"}}, Items{})
	if got := without.Compile(asker); got.MayCluster(Admin) || !got.Revoked() {
		t.Error("a revoked token may still do something")
	}
	if with.Fits() != nil || without.Fits() == nil {
		t.Errorf("with an admin: %v; locked out: %v", with.Fits(), without.Fits())
	}
}

// The permit must agree with the plain reading of the bindings, whatever they are.
func FuzzPermit(f *testing.F) {
	f.Add("a/", "a/x", "default", "*", uint8(3))
	f.Add("a", "a", "default", "default", uint8(8))
	f.Add("", "x//y/", "n", "n", uint8(1))
	f.Fuzz(func(t *testing.T, prefix, path, namespace, bound string, verb uint8) {
		b := &Binding{Role: "member", Principal: "ann", Namespace: bound, Prefix: prefix}
		p := policy(b).proving("ann")
		v, asker := Verb(verb%uint8(verbs)), &Asker{Principal: "ann"}
		mine := p.Compile(asker).May(v, namespace, path, &Owner{Principal: "ann"})
		if why := p.Why(asker, v, namespace, path); mine != (len(why) > 0) {
			t.Errorf("prefix %q, path %q: the permit says %v, the bindings %d", prefix, path, mine, len(why))
		}
	})
}

// Whether something is allowed costs about the same, whatever is bound: to the asker, or to as many groups as it has,
// whose grants are merged or, where too many sets of groups are remembered, are not.
func BenchmarkMay(b *testing.B) {
	for _, c := range []struct {
		bindings, groups int
		full             bool
	}{{1, 1, false}, {1000, 1, false}, {1000, 3, false}, {1000, MaxGroups, false}, {1000, MaxGroups, true}} {
		p, list := crowd(c.bindings, c.groups, 1)
		if c.full {
			p.rules.places.Store(maxPlaces)
		}
		permit, own := p.Permit(list[0]), &Owner{Principal: list[0].Principal}
		path := fmt.Sprintf("team-%d/jobs/nightly", c.groups-1) // of the last group
		b.Run(fmt.Sprintf("bindings=%d/groups=%d/full=%v", c.bindings, c.groups, c.full), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !permit.May(Renew, "default", path, own) {
					b.Fatal("it may not")
				}
			}
		})
	}
}
