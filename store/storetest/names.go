package storetest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func nameTests() []test {
	return []test{
		{name: "names/hostile", run: hostileNames},
		{name: "names/longest", run: longestNames},
	}
}

// hostile are names of resources that a careless encoding mixes up, or that mean something to a
// system. All of them can be held at the same time.
var hostile = []string{
	"a", "A", "a/b", "a-b", "a_b", "a.b", "a:b", "a b", "a%2Fb", "a%2fb", "a%b", "a+b", "a\\b", "a|b", "a,b",
	"a;b", "ab", "a/b/c", "a/bc", "a ", " a", "a.", ".a", "-a", "_a", "a-", "~a", "a~", "a=b", "a&b", "a#b",
	"a?b", "a*", "*", "?", "[a]", "[^a]", "{a}", "{}", "}{", "{a", "a}", "a{b}c", "{{a}}", "(a)", "<a>",
	"a'b", "a\"b", "'; drop table leases; --", "$1", "$(a)", "`a`", "@a", "^a$", "!a", "a^b", "ä", "a\u0308",
	"ß", "SS", "ss", "İ", "i", "ı", "日本語", "\U0001F600", "\u200b", "a\u200bb", "\u202eabc",
	"\ufeffa", "\uffff", "null", "NULL", "true", "0", "00", "1e5", "0x10", "con", "aux.txt", "lock", "leases",
	"leasehold", "a.lock", "__proto__", "constructor", "..a", "a..", "...",
	strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("y/", 100) + "y", strings.Repeat("ü", 200),
}

// hostileNames takes a lease on each name: all of them are different resources, and come back as they were sent.
func hostileNames(k *kit) {
	names := slices.Concat(hostile, k.Names)
	slices.Sort(names)
	names = slices.Compact(names)
	requests := make([]store.Request, len(names))
	k.together(8, func(worker int) {
		for i := worker; i < len(names); i += 8 {
			// Ids and holders may be as hostile.
			r := k.longer(store.Ref{Resource: k.res(names[i]), ID: k.id(strconv.Itoa(i) + " " + names[i])})
			r.Holder, r.Reason = "h "+names[i], "because of "+names[i]
			requests[i] = r
			if grant := k.get(r); grant.Resource != r.Resource || grant.ID != r.ID || grant.Holder != r.Holder {
				k.Errorf("%q: asked for %+v\ngranted %+v", names[i], r, grant.Lease)
			}
		}
	})
	k.together(8, func(worker int) {
		for i := worker; i < len(names); i += 8 {
			k.shows(names[i], requests[i])
		}
	})
	var want []string
	var refs []store.Ref
	for _, r := range requests {
		want = append(want, r.Resource)
		refs = append(refs, store.Ref{Resource: r.Resource, ID: r.ID})
	}
	slices.Sort(want)
	if got := k.list(k.res(""), 50); !slices.Equal(got, want) {
		k.Errorf("the list shows %d names, in this order: %q\nwant %q", len(got), got, want)
	}
	for i, renewal := range k.renewAll(refs...) {
		if renewal.Ended != nil || renewal.Err != nil {
			k.Errorf("%q was not renewed: %s", names[i], ended(renewal))
		}
	}
	k.release(refs...)
	if got := k.list(k.res(""), 50); len(got) != 0 {
		k.Errorf("after all were released the list shows %q", got)
	}
}

// shows checks what a read says of a lease with a hostile name.
func (k *kit) shows(name string, r store.Request) {
	status := k.look(r.Resource)
	if len(status.Holders) != 1 || status.Resource != r.Resource {
		k.Errorf("%q: read shows %+v", name, status.Status)
		return
	}
	if h := status.Holders[0]; h.ID != r.ID || h.Holder != r.Holder || h.Reason != r.Reason {
		k.Errorf("%q: read shows %+v", name, h)
	}
}

// Names of 1,024 bytes work, and two that differ in the last byte are two.
func longestNames(k *kit) {
	fill := func(prefix, last string) string {
		return prefix + strings.Repeat("n", leasehold.MaxName-len(prefix)-len(last)) + last
	}
	for _, last := range []string{"1", "2"} {
		r := store.Ref{Resource: fill(k.res(""), last), ID: fill(k.id(""), last)}
		request := k.longer(r)
		request.Holder, request.Reason = fill("h", last), fill("r", last)
		grant := k.get(request)
		if grant.Resource != r.Resource || grant.ID != r.ID || grant.Holder != request.Holder {
			k.Errorf("names of %d bytes come back with %d, %d and %d", leasehold.MaxName, len(grant.Resource),
				len(grant.ID), len(grant.Holder))
		}
		k.alive(r)
	}
	for _, last := range []string{"1", "2"} {
		k.release(store.Ref{Resource: fill(k.res(""), last), ID: fill(k.id(""), last)})
	}
}
