package redis

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/store"
	"github.com/redis/rueidis"
)

// The fields of a lease in the order in which the scripts return them.
const (
	fieldID = iota
	fieldDeadline
	fieldHow
	fieldToken
	fieldTTL
	fieldAcquired
	fieldNote
	fieldBroken
	fieldAt
	fieldBy
	fieldWhy
)

// lease returns a lease as it is now, at the time of the primary.
func (s *Store) lease(now int64, resource string, fields []rueidis.RedisMessage) leasehold.Lease {
	get := func(i int) (m rueidis.RedisMessage) {
		if i < len(fields) {
			m = fields[i]
		}
		return m
	}
	deadline, n := number(get(fieldDeadline)), readNote(text(get(fieldNote)))
	token := leasehold.Token(number(get(fieldToken)))
	l := leasehold.Lease{
		Namespace: s.namespace, Resource: resource, ID: text(get(fieldID)),
		Holder: n.Holder, Labels: n.labels(), Reason: n.Reason,
		State: leasehold.Leased, Token: token, Floor: token,
		TTL:      micros(number(get(fieldTTL))),
		Acquired: time.UnixMicro(number(get(fieldAcquired))), Expires: time.UnixMicro(deadline),
	}
	// More than the TTL is left after the clock stepped back. It may step forward again, so nobody relies on it.
	l.Remaining = min(max(0, micros(deadline-now)), l.TTL)
	how := leasehold.How(number(get(fieldHow)))
	switch {
	case how == leasehold.ByBreak:
		l.State, l.Remaining = leasehold.Broken, 0
	case how != 0:
		l.State, l.Remaining = leasehold.Available, 0
	case deadline <= now:
		l.State = leasehold.Expired
		if number(get(fieldBroken)) == deadline {
			l.State = leasehold.Broken
		}
	case number(get(fieldBroken)) != 0:
		l.State = leasehold.Breaking
	}
	return l
}

// newLease returns a lease that was granted now.
func (s *Store) newLease(now int64, r store.Request, token leasehold.Token) leasehold.Lease {
	acquired := time.UnixMicro(now)
	return leasehold.Lease{
		Namespace: s.namespace, Resource: r.Resource, ID: r.ID,
		Holder: r.Holder, Labels: store.LabelsOf(store.LabelMap(r.Labels)), Reason: r.Reason,
		State: leasehold.Leased, Token: token, Floor: token,
		TTL: r.TTL, Remaining: r.TTL, Acquired: acquired, Expires: acquired.Add(r.TTL),
	}
}

// last returns how the newest lease of a resource ended; nil if it has not.
func last(l leasehold.Lease, fields []rueidis.RedisMessage) *leasehold.Ending {
	e := leasehold.Ending{ID: l.ID, Holder: l.Holder, Token: l.Token, TTL: l.TTL,
		By: text(fields[fieldBy]), Reason: text(fields[fieldWhy])}
	switch how := leasehold.How(number(fields[fieldHow])); {
	case how != 0:
		e.How, e.At = how, time.UnixMicro(number(fields[fieldAt]))
	case l.State == leasehold.Broken:
		e.How, e.At = leasehold.ByBreak, l.Expires
	case l.State == leasehold.Expired:
		e.How, e.At, e.By, e.Reason = leasehold.ByTTL, l.Expires, "", ""
	default:
		return nil
	}
	return &e
}

// ending reads a mark, as the scripts return it.
func (s *Store) ending(id string, fields []rueidis.RedisMessage) leasehold.Ending {
	if len(fields) < 8 {
		return leasehold.Ending{ID: id}
	}
	e := leasehold.Ending{ID: id, How: leasehold.How(number(fields[0])), At: time.UnixMicro(number(fields[1])),
		Token: leasehold.Token(number(fields[2])), Holder: text(fields[5])}
	if e.How == leasehold.ByBreak {
		e.By, e.Reason = text(fields[6]), text(fields[7])
	}
	return e
}
