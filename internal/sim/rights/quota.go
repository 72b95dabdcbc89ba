package rights

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// had is how much somebody has, or what is in a namespace: leases with those who wait for one, those who wait,
// sessions and records.
type had [4]int64

// counts counts everything anew.
func (j *Judge) counts(of func(space string, by *access.Asker) bool) (n had) {
	for at, c := range j.claims {
		if !of(at.space, c.by) {
			continue
		}
		if n[0]++; c.waits {
			n[1]++
		}
	}
	for at, by := range j.sessions {
		if of(at.space, by) {
			n[2]++
		}
	}
	for at, by := range j.records {
		if of(at.space, by) {
			n[3]++
		}
	}
	return n
}

// A Share is what somebody, or a namespace, has before a command, and may have.
type Share struct {
	whose string
	of    func(space string, by *access.Asker) bool
	has   had
	most  had // 0: any number
}

// Shares returns what the quotas are about that a command has to keep.
func (j *Judge) Shares(c core.Command, a *access.Asker) (list []Share) {
	if a == nil || !j.on || a.Principal == Root {
		return nil
	}
	space := ""
	switch c := c.(type) {
	case *core.Acquire:
		space = c.Namespace
	case *core.OpenSession:
		space = c.Namespace
	case *core.PutRecord:
		space = c.Namespace
	case *core.Txn:
		space = c.Namespace
	default:
		return nil
	}
	own := j.quotas["p"+a.Principal]
	if own == nil {
		own = j.quotas["p"+access.Everybody]
	}
	mine := func(_ string, by *access.Asker) bool { return by != nil && by.Principal == a.Principal }
	there := func(in string, _ *access.Asker) bool { return in == space }
	for _, s := range []struct {
		whose string
		q     *access.Quota
		of    func(string, *access.Asker) bool
	}{{a.Principal, own, mine}, {"namespace " + space, j.quotas["n"+space], there}} {
		if s.q != nil {
			most := had{s.q.Leases, s.q.Waiters, s.q.Sessions, s.q.Records}
			list = append(list, Share{s.whose, s.of, j.counts(s.of), most})
		}
	}
	return list
}

// Within checks that a command made nothing more than a quota allows, and was not refused for a quota that has room.
// What was over before it may have been collected, so that there is more room than was counted. A request that is sent
// again is told what it was told before, whatever room there is by now.
func (j *Judge) Within(c core.Command, list []Share, again bool, answer core.Answer) {
	refused := Limited(answer) && !again
	room := true
	for _, s := range list {
		for kind, now := range j.counts(s.of) {
			if s.most[kind] > 0 && now > s.has[kind] && now > s.most[kind] {
				j.violated("%s has %v by %T, and may have %v", s.whose, j.counts(s.of), c, s.most)
			}
			room = room && (s.most[kind] == 0 || s.has[kind]+writes(c) <= s.most[kind])
		}
	}
	if refused && room {
		j.violated("%T is refused for a quota, and there is room: %v", c, answer.Err)
	}
	if refused {
		j.count("refused for a quota")
	}
}

// Limited reports whether an answer is a refusal for a quota.
func Limited(a core.Answer) bool { return a.Err != nil && a.Err.Code == leasehold.Limited }

// writes is the most that a command makes of anything.
func writes(c core.Command) int64 {
	if x, ok := c.(*core.Txn); ok {
		return int64(max(len(x.Then), len(x.Else)))
	}
	return 1
}
