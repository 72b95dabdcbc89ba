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
	c.send(func(b *jsonBuffer) { b.advice(&advice) })
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
	c.send(func(b *jsonBuffer) {
		b.open()
		array(b, "items", list, b.alarm)
		if next != 0 {
			b.text("next", strconv.FormatUint(next, 10))
		}
		b.close()
	})
	return nil
}

// acknowledgeAlarm clears an alarm that somebody has looked at.
func (c *call) acknowledgeAlarm() error {
	var body v1.AcknowledgeAlarmRequest
	if err := c.read(&body); err != nil {
		return err
	}
	kind, err := toAlarmKind(body.Kind)
	if err != nil {
		return err
	}
	command := &core.AcknowledgeAlarm{
		Namespace: c.namespace, Kind: kind, Resource: body.Resource, ID: body.ID,
		Session: body.Session, Order: body.Occurrence, By: body.By, Reason: body.Reason, Request: c.once,
	}
	err = firstError(checkText("resource", body.Resource), checkText("id", body.ID),
		checkText("session", body.Session), checkText("by", body.By), checkText("reason", body.Reason),
		command.Validate())
	if err != nil {
		return err
	}
	return c.doNothingMore(command)
}

// alarmKind reads a kind of alarms; 0 if any will do.
func (c *call) alarmKind() (leasehold.AlarmKind, error) {
	if !c.query.Has("kind") {
		return 0, nil
	}
	return toAlarmKind(c.query.Get("kind"))
}

func toAlarmKind(s string) (leasehold.AlarmKind, error) {
	if kind := leasehold.AlarmKindOf(s); kind != 0 {
		return kind, nil
	}
	var names []string
	for _, k := range leasehold.AlarmKinds {
		names = append(names, k.String())
	}
	return 0, invalid("unknown kind %s: use %s", brief(s), strings.Join(names, ", "))
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

func (b *jsonBuffer) alarm(a *leasehold.Alarm) {
	b.open()
	b.text("namespace", a.Namespace)
	b.text("kind", a.Kind.String())
	b.some("resource", a.Resource)
	b.some("id", a.ID)
	b.some("holder", a.Holder)
	if a.Token != 0 {
		b.number("token", uint64(a.Token))
	}
	b.some("session", a.Session)
	if a.Order != 0 {
		b.number("occurrence", a.Order)
	}
	b.moment("since", a.Since)
	b.moment("last", a.Last)
	b.number("count", uint64(a.Count))
	b.text("text", a.Text)
	b.close()
}

// usual writes what was learned, if that is anything.
func (b *jsonBuffer) usual(u *leasehold.Usual) {
	if u == nil {
		return
	}
	b.key("usual")
	b.open()
	b.number("holds", uint64(u.Holds))
	b.someSpan("hold_p50", u.HoldP50)
	b.someSpan("hold_p95", u.HoldP95)
	b.number("unclean", uint64(u.Unclean))
	b.number("waits", uint64(u.Waits))
	b.someSpan("wait_p50", u.WaitP50)
	b.someSpan("wait_p95", u.WaitP95)
	b.count("queue", u.Queue)
	b.close()
}

func (b *jsonBuffer) advice(a *leasehold.Advice) {
	b.open()
	b.text("namespace", a.Namespace)
	b.text("resource", a.Resource)
	b.span("ttl", a.TTL)
	b.key("learned")
	*b = strconv.AppendBool(*b, a.Learned)
	b.someSpan("least", a.Least)
	b.someSpan("cheapest", a.Cheapest)
	b.someSpan("most", a.Most)
	b.number("renewals", uint64(a.Renewals))
	b.span("interval", a.Interval)
	b.span("take_over", a.TakeOver)
	b.someSpan("grace", a.Grace)
	b.usual(a.Usual)
	b.names("reasons", a.Reasons)
	b.close()
}
