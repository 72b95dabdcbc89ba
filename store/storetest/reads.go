package storetest

import (
	"slices"
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
)

func readTests() []test {
	return []test{
		{name: "read/each state", run: readEachState},
		{name: "list/pages", run: listPages},
		{name: "list/prefix", run: listPrefix},
		{name: "close", run: closed},
	}
}

func readEachState(k *kit) {
	never := k.look(k.res("never"))
	if never.State != leasehold.Available || never.Resource != k.res("never") || never.Holding != 0 {
		k.Errorf("what nobody ever held is %+v", never.Status)
	}
	grant := k.acquire(k.ref("r", "a"))
	now := k.look(k.res("r"))
	if now.State != leasehold.Leased || now.Holding != 1 || len(now.Holders) != 1 {
		k.Fatalf("what is held is %+v", now.Status)
	}
	if h := now.Holders[0]; h.Token != grant.Token || h.Remaining <= 0 || h.Remaining > k.TTL {
		k.Errorf("what is held with token %d for %v shows token %d and %v", grant.Token, k.TTL, h.Token, h.Remaining)
	}
	k.release(k.ref("r", "a"))
	if now := k.look(k.res("r")); now.State != leasehold.Available || now.Holding != 0 || len(now.Holders) != 0 {
		k.Errorf("what was released is %+v", now.Status)
	}
	k.acquire(k.ref("r", "b"))
	if _, err := k.breakLease(k.ref("r", "b")); err != nil {
		k.Fatalf("break: %v", err)
	}
	if now := k.look(k.res("r")); now.Holding != 0 || now.State == leasehold.Leased {
		k.Errorf("what was broken is %+v", now.Status)
	}
}

// list reads all pages.
func (k *kit) list(prefix string, limit int) (names []string) {
	k.Helper()
	q := store.Query{Prefix: prefix, Limit: limit}
	for pages := 0; ; pages++ {
		ctx, cancel := k.within(0)
		page, err := k.store.List(ctx, q)
		cancel()
		if err != nil {
			k.Fatalf("list: %v", err)
		}
		if len(page.Items) > limit {
			k.Fatalf("a page of %d resources has %d", limit, len(page.Items))
		}
		for _, item := range page.Items {
			if item.Holding == 0 && item.Waiting == 0 {
				k.Errorf("the list shows %s, which nobody has or wants", item.Resource)
			}
			names = append(names, item.Resource)
		}
		if page.Next == "" {
			return names
		}
		if q.After == page.Next || pages > 1000 {
			k.Fatalf("the list does not end: page %d says that %q is next", pages, page.Next)
		}
		q.After = page.Next
	}
}

func listPages(k *kit) {
	var want []string
	k.together(4, func(worker int) {
		for i := worker; i < 23; i += 4 {
			name := "r" + strconv.Itoa(100+i)
			k.get(k.longer(k.ref(name, name)))
		}
	})
	for i := range 23 {
		want = append(want, k.res("r"+strconv.Itoa(100+i)))
	}
	k.release(k.ref("r105", "r105"))
	if _, err := k.breakLease(k.ref("r106", "r106")); err != nil {
		k.Fatalf("break: %v", err)
	}
	want = slices.Delete(want, 5, 7)
	for _, limit := range []int{7, 21, 100} {
		if got := k.list(k.res(""), limit); !slices.Equal(got, want) {
			k.Errorf("in pages of %d: %v\nwant %v", limit, got, want)
		}
	}
	if got := k.list(k.res("r12"), 1); !slices.Equal(got, want[18:]) {
		k.Errorf("in pages of 1: %v\nwant %v", got, want[18:])
	}
}

func listPrefix(k *kit) {
	for _, name := range []string{"a/1", "a/2", "aa", "b/1", "B/1", "a%", "a_"} {
		k.get(k.longer(k.ref(name, name)))
	}
	for prefix, want := range map[string][]string{
		"a/": {"a/1", "a/2"}, "a": {"a%", "a/1", "a/2", "a_", "aa"}, "b": {"b/1"}, "B/1": {"B/1"}, "a_": {"a_"},
		"a%": {"a%"}, "c": nil,
	} {
		var full []string
		for _, name := range want {
			full = append(full, k.res(name))
		}
		if got := k.list(k.res(prefix), 2); !slices.Equal(got, full) {
			k.Errorf("with the prefix %q: %v\nwant %v", prefix, got, full)
		}
	}
}

// A handle that is closed decides nothing more, and its leases go on where they can.
func closed(k *kit) {
	s := k.second()
	r := k.request(k.ref("r", "a"))
	if _, err := k.askOf(s, r); err != nil {
		k.Fatalf("acquire: %v", err)
	}
	if err := s.Close(); err != nil {
		k.Errorf("close: %v", err)
	}
	if err := s.Close(); err != nil {
		k.Errorf("close again: %v", err)
	}
	if _, err := k.askOf(s, k.request(k.ref("other", "b"))); err != nil && !store.Transient(err) {
		k.Errorf("a closed handle refuses: %s", describe(err))
	}
	if k.features.Has(store.Detached) {
		k.alive(k.ref("r", "a"))
	}
}
