package native

import (
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

// advice suggests a TTL for a resource.
func (c *call) advice() error {
	path := c.path("path")
	if err := checkPath("resource", path); err != nil {
		return err
	}
	var advice leasehold.Advice
	if err := c.look(func(v core.View) { advice = v.Advice(c.namespace, path) }); err != nil {
		return err
	}
	c.send(func(b *encode.Buffer) { b.Advice(&advice) })
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
	more := ""
	if next != 0 {
		more = strconv.FormatUint(next, 10)
	}
	return sendPage(c, list, more, (*encode.Buffer).Alarm)
}

// acknowledgeAlarm clears an alarm that somebody has looked at.
func (c *call) acknowledgeAlarm(body *v1.AcknowledgeAlarmRequest) (*core.AcknowledgeAlarm, error) {
	kind, err := toAlarmKind(body.Kind)
	if err != nil {
		return nil, err
	}
	command := &core.AcknowledgeAlarm{
		Namespace: c.namespace, Kind: kind, Resource: body.Resource, ID: body.ID,
		Session: body.Session, Order: body.Occurrence, By: body.By, Reason: body.Reason, Request: c.once,
	}
	return command, firstError(checkText("resource", body.Resource), checkText("id", body.ID),
		checkText("session", body.Session), checkText("by", body.By), checkText("reason", body.Reason))
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
