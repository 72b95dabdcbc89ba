package core

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/leasehold/leasehold"
)

// subject says what a request is about: a key that is sent again with another request is
// refused, instead of being answered as if it were the first. From level 4 on it covers
// everything that changes what is done.
func (s *State) subject(c Command) string {
	if !s.atLeast(Level4) {
		return c.subject()
	}
	hash := fnv.New64a()
	fmt.Fprint(hash, details(c)...)
	return fmt.Sprintf("%s#%016x", c.subject(), hash.Sum64())
}

// said is a subject as people read it.
func said(subject string) string {
	text, _, _ := strings.Cut(subject, "#")
	return text
}

// details are what a command would do, without who asks for it and why. Among them are neither
// how long an acquire waits, since whoever sends it again has less time left, nor its ids, which
// a door may have made.
func details(c Command) []any {
	switch c := c.(type) {
	case *OpenSession:
		return list(c.TTL)
	case *Acquire:
		return list(anonymous(c.items()), c.Holder, c.TTL, c.Pick, c.Session, c.Grace, c.HoldLimit, c.Priority)
	case *Release:
		return list(c.Session, c.Withdraw)
	case *Change:
		return list(c.Holder, c.NewID)
	case *Break:
		return list(c.Token, c.Period, c.Remains)
	case *Move:
		return list(c.Priority)
	case *Ask:
		return list(c.Message)
	case *Acknowledge:
		return list(c.Token)
	case *Define:
		return list(c.Definition)
	case *PutRecord:
		return list(c.Value, large(c.Large), c.From, c.Keep, c.Session, c.IfRevision, c.IfAbsent, c.Fence)
	case *DeleteRecord:
		return list(c.To, c.IfRevision, c.Fence)
	case *Txn:
		return append(append(list(c.If), operations(c.Then)...), operations(c.Else)...)
	}
	return nil
}

func anonymous(items []Item) []Item {
	for i := range items {
		items[i].ID = ""
	}
	return items
}

func operations(ops []Op) []any {
	all := list(len(ops))
	for _, o := range ops {
		if o.Acquire != nil {
			all = append(all, details(o.Acquire)...)
		}
		all = append(all, large(o.Large))
		o.Acquire, o.Large = nil, nil // which would be told as addresses
		all = append(all, quoted(o))
	}
	return all
}

// list tells values apart, whatever stands in their texts.
func list(values ...any) []any {
	for i, v := range values {
		values[i] = quoted(v)
	}
	return values
}

func quoted(v any) string { return fmt.Sprintf("%#v;", v) }

func large(l *leasehold.Large) leasehold.Large {
	if l == nil {
		return leasehold.Large{}
	}
	return *l
}
