package native

import (
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// advice suggests a TTL for a resource.
func (c *call) advice() error {
	path := c.r.PathValue("path")
	if err := checkPath("resource", path); err != nil {
		return err
	}
	var advice leasehold.Advice
	if err := c.look(func(v core.View) { advice = v.Advice(c.namespace, path) }); err != nil {
		return err
	}
	c.send(func(p *paper) { p.advice(&advice) })
	return nil
}

// alarms shows what somebody should look at.
func (c *call) alarms() error {
	prefix, badPrefix := c.prefix()
	kind, badKind := c.alarmKind()
	before, badAfter := c.order()
	limit, badLimit := c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	if err := firstError(badPrefix, badKind, badAfter, badLimit); err != nil {
		return err
	}
	var list []leasehold.Alarm
	var next uint64
	q := core.AlarmQuery{Prefix: prefix, Kind: kind, Before: before, Most: limit}
	if err := c.look(func(v core.View) { list, next = v.Alarms(c.namespace, q) }); err != nil {
		return err
	}
	c.send(func(p *paper) {
		p.open()
		array(p, "items", list, p.alarm)
		if next != 0 {
			p.text("next", strconv.FormatUint(next, 10))
		}
		p.close()
	})
	return nil
}

// alarmKind reads a kind of alarms; 0 if any will do.
func (c *call) alarmKind() (leasehold.AlarmKind, error) {
	s := c.query.Get("kind")
	kind := leasehold.AlarmKindOf(s)
	if kind != 0 || s == "" && !c.query.Has("kind") {
		return kind, nil
	}
	var names []string
	for _, k := range leasehold.AlarmKinds {
		names = append(names, k.String())
	}
	return 0, invalid("kind %s is none that there is: use %s", brief(s), strings.Join(names, ", "))
}

// order reads where a page of alarms goes on.
func (c *call) order() (uint64, error) {
	s := c.query.Get("after")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, invalid("after %s is not what \"next\" of a page said: leave it out to begin again", brief(s))
	}
	return n, nil
}

func (p *paper) alarm(a *leasehold.Alarm) {
	p.open()
	p.text("namespace", a.Namespace)
	p.text("kind", a.Kind.String())
	p.some("resource", a.Resource)
	p.some("id", a.ID)
	p.some("holder", a.Holder)
	if a.Token != 0 {
		p.number("token", uint64(a.Token))
	}
	p.some("session", a.Session)
	p.moment("since", a.Since)
	p.moment("last", a.Last)
	p.number("count", uint64(a.Count))
	p.text("text", a.Text)
	p.close()
}

// usual writes what was learned, if that is anything.
func (p *paper) usual(u *leasehold.Usual) {
	if u == nil {
		return
	}
	p.key("usual")
	p.open()
	p.number("holds", uint64(u.Holds))
	p.someSpan("hold_p50", u.HoldP50)
	p.someSpan("hold_p95", u.HoldP95)
	p.number("unclean", uint64(u.Unclean))
	p.number("waits", uint64(u.Waits))
	p.someSpan("wait_p50", u.WaitP50)
	p.someSpan("wait_p95", u.WaitP95)
	p.count("queue", u.Queue)
	p.close()
}

func (p *paper) advice(a *leasehold.Advice) {
	p.open()
	p.text("namespace", a.Namespace)
	p.text("resource", a.Resource)
	p.span("ttl", a.TTL)
	p.key("learned")
	*p = strconv.AppendBool(*p, a.Learned)
	p.someSpan("least", a.Least)
	p.someSpan("cheapest", a.Cheapest)
	p.someSpan("most", a.Most)
	p.number("renewals", uint64(a.Renewals))
	p.span("interval", a.Interval)
	p.span("take_over", a.TakeOver)
	p.someSpan("grace", a.Grace)
	p.usual(a.Usual)
	p.names("reasons", a.Reasons)
	p.close()
}
