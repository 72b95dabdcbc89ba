package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// pages goes through a list, and checks that no place to go on names what is hidden.
func pages(t *testing.T, hidden string, page func(after string) (found []string, next string)) (all []string, n int) {
	t.Helper()
	for after := ""; n < 1000; n++ {
		found, next := page(after)
		all = append(all, found...)
		if strings.Contains(next, hidden) {
			t.Fatalf("the next page begins at %q", next)
		}
		if next == "" {
			return all, n + 1
		}
		if next == after {
			t.Fatalf("page %d does not advance", n)
		}
		after = next
	}
	t.Fatal("the pages do not end")
	return nil, 0
}

// manyHidden has 6,000 resources, records and sessions of bob's, and some of own's among and behind them.
func (w *world) manyHidden() (mine []string) {
	w.change(policy.Keys{}, policy.Items{Bindings: []*policy.Binding{bind("bob", "member", space, "m/")}})
	for i := range 6000 {
		who, name := "bob", fmt.Sprintf("m/hidden-%04d", i)
		if i%1500 == 1499 {
			who, name = "own", fmt.Sprintf("m/own-%04d", i)
			mine = append(mine, name)
		}
		w.acquire(who, space, name, name)
		w.put(who, space, name, "value")
		w.session(who, space, name)
	}
	return mine
}

func TestPagesPassOverWhatIsHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		mine := w.manyHidden()
		read := func(look func(core.View)) {
			t.Helper()
			if err := w.guard.Read(as("own"), look); err != nil {
				t.Fatal(err)
			}
		}
		lists := map[string]func(string) ([]string, string){
			"Find": func(after string) (found []string, next string) {
				read(func(v core.View) {
					var list []leasehold.Status
					list, next = v.Find(space, core.ListQuery{After: after, Most: 3})
					for _, s := range list {
						found = append(found, s.Resource)
					}
				})
				return found, next
			},
			"Sessions": func(after string) (found []string, next string) {
				read(func(v core.View) {
					var list []leasehold.Session
					list, next = v.Sessions(space, "", after, 3)
					for _, s := range list {
						found = append(found, s.ID)
					}
				})
				return found, next
			},
			"Records": func(after string) (found []string, next string) {
				read(func(v core.View) {
					q := core.RecordQuery{Most: 3}
					if after != "" {
						q.From = after + "\x00"
					}
					page, failure := v.Records(space, q)
					if failure != nil {
						t.Fatal(failure)
					}
					for _, r := range page.Records {
						found = append(found, r.Path)
					}
					next = page.Next()
				})
				return found, next
			},
		}
		for name, list := range lists {
			if all, n := pages(t, "hidden", list); !slices.Equal(all, mine) || n > 200 {
				t.Errorf("%s: %v on %d pages, want %v", name, all, n, mine)
			}
		}
		read(func(v core.View) {
			if page, failure := v.Records(space, core.RecordQuery{Count: true, Most: 1}); failure != nil || page.Count != len(mine) {
				t.Errorf("%d are counted (%v), want %d", page.Count, failure, len(mine))
			}
		})
	})
}

// A search shows nobody what it may not read: who may read some of a range is denied, and asks for its own part.
func TestSearchesNeedAllOfTheirRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.change(policy.Keys{}, policy.Items{Bindings: []*policy.Binding{bind("ann", "member", space, "mine/")}})
		w.populate()
		w.put("ann", space, "mine/1", "v")
		newest := core.Selection{By: core.ByMod, Descend: true}
		var page core.RecordPage
		var failure *leasehold.Error
		err := w.guard.Read(as("ann"), func(v core.View) { page, failure = v.Records(space, core.RecordQuery{Select: newest}) })
		if len(page.Records) != 0 || failure != nil || !errors.Is(err, leasehold.ErrDenied) {
			t.Errorf("a search of everything finds %d records: %v, %v", len(page.Records), failure, err)
		}
		err = w.guard.Read(as("ann"), func(v core.View) {
			page, failure = v.Records(space, core.RecordQuery{From: "mine/", To: "mine0", Select: newest})
		})
		if len(page.Records) != 1 || failure != nil || err != nil {
			t.Errorf("a search of its own finds %d records: %v, %v", len(page.Records), failure, err)
		}
	})
}

// Beside a prefix there may be any number of others: a page of one's own is one page.
func TestAPageCostsNoMoreForWhatIsBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.manyHidden()
		w.change(policy.Keys{}, policy.Items{Bindings: []*policy.Binding{bind("ann", "member", space, "z"), bind("ann", "viewer", space, "m/hidden-0007")}})
		w.populate()
		for _, path := range []string{"z", "z/1"} {
			w.acquire("ann", space, path, "id-"+path)
			w.put("ann", space, path, "v")
		}
		err := w.guard.Read(as("ann"), func(v core.View) {
			list, next := v.Find(space, core.ListQuery{Most: 100})
			var found []string
			for _, s := range list {
				found = append(found, s.Resource)
			}
			if want := []string{"a/x", "m/hidden-0007", "z", "z/1"}; !slices.Equal(found, want) || next != "" || v.Work() > 100 {
				t.Errorf("%v, next %q, for %d of work; want %v", found, next, v.Work(), want)
			}
			page, failure := v.Records(space, core.RecordQuery{Count: true})
			if failure != nil || page.Count != 4 || len(page.Records) != 4 || page.More {
				t.Errorf("%d records of %d, more %v, %v", len(page.Records), page.Count, page.More, failure)
			}
			if page, failure := v.Records(space, core.RecordQuery{Most: 2, KeysOnly: true}); failure != nil || page.Next() != "m/hidden-0007" {
				t.Errorf("two records: next is %q, %v", page.Next(), failure)
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A sealed place is for its asker alone.
func TestWhatIsSealedForOneIsNotOpenToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.bare.Feed().Policy()
		own := &view{permit: p.Compile(&policy.Asker{Principal: "own"})}
		ann := &view{permit: p.Compile(&policy.Asker{Principal: "ann"})}
		place := own.seal("b/secret", false)
		if strings.Contains(place, "secret") || own.open(place) != "b/secret" {
			t.Errorf("%q is opened as %q", place, own.open(place))
		}
		if got := ann.open(place); got != "" {
			t.Errorf("ann opens it: %q", got)
		}
		for _, bad := range []string{sealed, sealed + "x", place[:len(place)-1] + "x", place + "x"} {
			if got := own.open(bad); got != "" {
				t.Errorf("%q is opened as %q", bad, got)
			}
		}
		if got := own.open("plain"); got != "plain" {
			t.Errorf("a plain one is opened as %q", got)
		}
	})
}

// What foreign clients keep is read through their own door, or with a verb of its own.
func TestForeignRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.change(policy.Keys{}, policy.Items{Bindings: []*policy.Binding{bind("ann", "member", space, "")}})
		paths := []string{"azure.blobs/x", "azure.json", "azure/x", "m", "terraform/x", "tflineage/x", "u"}
		for _, path := range paths {
			w.put("op", space, path, "v")
		}
		list := func(who, door string) (found []string, count int) {
			ctx := engine.WithOrigin(as(who), leasehold.Origin{Door: door})
			err := w.guard.Read(ctx, func(v core.View) {
				page, failure := v.Records(space, core.RecordQuery{Count: true})
				if failure != nil {
					t.Fatal(failure)
				}
				for _, r := range page.Records {
					found = append(found, r.Path)
				}
				count = page.Count
			})
			if err != nil {
				t.Fatal(err)
			}
			return found, count
		}
		for _, c := range []struct {
			who, door string
			want      []string
		}{
			{"ann", "native", []string{"azure.json", "m", "u"}},
			{"ann", "terraform", paths}, {"ann", "azure", paths}, {"op", "native", paths},
		} {
			if found, count := list(c.who, c.door); !slices.Equal(found, c.want) || count != len(c.want) {
				t.Errorf("%s through %s: %v, count %d", c.who, c.door, found, count)
			}
		}
		_, err := w.see("ann", func(v core.View) any { return pair(v.Record(space, "terraform/x", 0)) })
		if !errors.Is(err, leasehold.ErrDenied) || !strings.Contains(err.Error(), "foreign") {
			t.Errorf("one by its path: %v", err)
		}
	})
}
