package native

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/translate"
	"github.com/leasehold/leasehold/internal/id"
)

// newID makes the id of a lease or a session for a caller that proposed none.
func newID() string { return id.New() }

// sessionID makes the id of a session for a caller that proposed none. If the
// request has a name of its own, the id comes from that, so that a second try asks
// for the same session and not for another one under the same name.
func (c *call) sessionID() string {
	once := c.once
	if once == (core.Request{}) {
		return newID()
	}
	return c.derivedID(fmt.Appendf(nil, "%q %q %d", once.Key, once.Session, once.Sequence))
}

// leaseID makes the id of the nth lease of a request, in the same way: a second try finds what
// the first one got or waits for, also when its answer is no longer remembered. A caller that uses
// a key again later is told that its lease is over, for as long as ended ids are remembered.
func (c *call) leaseID(n int) string {
	if c.once == (core.Request{}) {
		return newID()
	}
	return c.madeID(fmt.Sprintf("lease %d", n))
}

// madeID makes the id of what a request asks for, another one for each such thing.
func (c *call) madeID(of string) string {
	once := c.once
	if once == (core.Request{}) {
		return newID()
	}
	return c.derivedID(fmt.Appendf(nil, "%s %q %q %d", of, once.Key, once.Session, once.Sequence))
}

// derivedID is another one for each principal: the same name of two requests must not make them meet.
func (c *call) derivedID(from []byte) string {
	if who := door.Principal(c.proof); who != "" {
		from = fmt.Appendf(from, " of %q", who)
	}
	sum := sha256.Sum256(from)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// toAcquire makes a command of a request. Limits are the core's to judge, but for what it cannot see.
func (c *call) toAcquire(a *v1.AcquireRequest) (*core.Acquire, error) {
	ls, err := translate.Labels(a.Labels)
	if err != nil {
		return nil, err
	}
	command := &core.Acquire{
		Namespace: c.namespace, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Labels: ls, Reason: a.Reason,
		TTL: time.Duration(a.TTL.Duration), Session: a.Session, Wait: time.Duration(a.Wait),
		Grace:     time.Duration(a.Grace),
		HoldLimit: time.Duration(a.HoldLimit), Priority: a.Priority, Party: a.Party, Request: c.once,
	}
	if a.TTL == (v1.TTL{}) && a.Session == "" {
		command.TTL, command.Pick = leasehold.DefaultTTL, core.TTLByDefault
	}
	switch {
	case a.TTL.Auto:
		command.TTL, command.Pick = leasehold.DefaultTTL, core.TTLAuto
	case a.TTL.Unattended:
		command.TTL, command.Pick = leasehold.DefaultTTL, core.TTLUnattended
	}
	command.Reservation = a.Reservation
	first, err := c.toItems(a, command)
	if err != nil {
		return nil, err
	}
	command.Task = leasehold.IsTaskFolder(a.Resource)
	command.ID, command.Slots, command.Capacity = first.ID, first.Slots, first.Capacity
	command.Select = translate.Selection(a.Where, a.Spread, a.Units)
	return command, firstError(checkHolder(a.Holder), checkText("session", a.Session), checkText("party", a.Party),
		checkText("reservation", a.Reservation),
		checkText("reason", a.Reason))
}

// toItems reads the resources that are asked for, and returns the first of them. Either the caller names all leases, or
// the server does: half of them could be asked for again and half could not.
func (c *call) toItems(a *v1.AcquireRequest, command *core.Acquire) (first core.Item, err error) {
	c.made, c.saidAll = a.ID == "", a.Slots == v1.AllSlots || a.Reservation != ""
	first, err = c.toItem(0, v1.AcquireItem{Resource: a.Resource, ID: a.ID, Shared: a.Shared, Slots: a.Slots,
		Capacity: a.Capacity})
	if err != nil || len(a.Also) == 0 {
		return first, err // a list that is empty and not nil would have the engine decode the command once more
	}
	command.Also = make([]core.Item, len(a.Also))
	for i, one := range a.Also {
		if command.Also[i], err = c.toItem(i+1, one); err != nil {
			return first, err
		}
	}
	return first, nil
}

// toItem reads the nth of the resources that are asked for.
func (c *call) toItem(n int, one v1.AcquireItem) (core.Item, error) {
	switch {
	case (one.ID == "") != c.made:
		return core.Item{}, invalid("some of the leases have an id and some have none: propose all ids or none")
	case one.Shared && one.Slots > 1:
		return core.Item{}, invalid("shared takes one slot, and slots says %d: leave one of them out", one.Slots)
	case one.Shared && one.Slots == v1.AllSlots:
		return core.Item{}, invalid("shared takes one slot, and slots says all: leave one of them out")
	case one.Shared:
		one.Slots = 1
	case one.Slots == v1.AllSlots:
		one.Slots = 0
	}
	// What ends with a slash is a folder of tasks. They are claimed one at a time.
	path := one.Resource
	if n == 0 && leasehold.IsTaskFolder(path) {
		path = path[:len(path)-1]
	}
	if err := firstError(checkPath("resource", path), checkText("id", one.ID)); err != nil {
		return core.Item{}, err
	}
	item := core.Item{Resource: one.Resource, ID: one.ID, Slots: int(one.Slots), Capacity: one.Capacity}
	if c.made {
		item.ID = c.leaseID(n)
	}
	return item, nil
}

// checkHolder has a sentence of its own because a first request often has none.
func checkHolder(s string) error {
	if s == "" {
		return invalid(`holder is missing: say who asks, for example "holder": "ci@build-7"`)
	}
	return checkText("holder", s)
}

func (c *call) toRenew(r *v1.RenewRequest) (*core.Renew, error) {
	command := &core.Renew{Namespace: c.namespace, ID: r.ID, Note: r.Note}
	if r.Note != nil {
		if err := door.CheckText("note", *r.Note, leasehold.MaxNote); err != nil {
			return nil, err
		}
	}
	return command, firstError(checkName("id", r.ID))
}

// toRelease reads what is to be released: one lease, or several, which are no longer one command.
func (c *call) toRelease(r *v1.ReleaseRequest) (*core.Release, error) {
	switch {
	case r.IDs != nil && len(r.IDs) == 0:
		return nil, invalid("ids is empty: name at least one lease")
	case r.ID != "" && len(r.IDs) > 0:
		return nil, invalid("id and ids are both given: leave one of them out")
	case len(r.IDs) > v1.MaxReleases:
		return nil, invalid("ids has %d of them: at most %d are allowed, send the rest in another request",
			len(r.IDs), v1.MaxReleases)
	case len(r.IDs) > 0 && c.once != (core.Request{}):
		return nil, invalid("a release of several ids needs no %s: send it again as it is", v1.KeyHeader)
	case len(r.IDs) == 0:
		return c.releaseOf(r.ID, r)
	}
	commands := make([]*core.Release, len(r.IDs))
	for i, id := range r.IDs {
		var err error
		if commands[i], err = c.releaseOf(id, r); err != nil {
			return nil, err
		}
	}
	c.released = commands
	return commands[0], nil
}

func (c *call) releaseOf(id string, r *v1.ReleaseRequest) (*core.Release, error) {
	command := &core.Release{Namespace: c.namespace, ID: id, Session: r.Session, Withdraw: r.Withdraw, Request: c.once}
	return command, firstError(checkName("id", id), checkText("session", r.Session))
}

func (c *call) toChange(r *v1.ChangeRequest) (*core.Change, error) {
	command := &core.Change{Namespace: c.namespace, ID: r.ID, Holder: r.Holder, NewID: r.NewID, Request: c.once}
	return command, firstError(checkName("id", r.ID), checkText("holder", r.Holder), checkText("new_id", r.NewID))
}

func (c *call) toBreak(r *v1.BreakRequest) (*core.Break, error) {
	command := &core.Break{
		Namespace: c.namespace, ID: r.ID, Resource: r.Resource, Token: leasehold.Token(r.Token), By: r.By,
		Reason: r.Reason, All: r.All, Waiting: r.Waiting, Remains: r.Period == nil, Request: c.once,
	}
	if r.Period != nil {
		command.Period = time.Duration(*r.Period)
	}
	err := firstError(checkText("id", r.ID), checkText("by", r.By), checkText("reason", r.Reason))
	if err == nil && r.Resource != "" {
		err = checkPath("resource", r.Resource)
	}
	return command, err
}

func (c *call) toMove(r *v1.MoveRequest) (*core.Move, error) {
	command := &core.Move{Namespace: c.namespace, ID: r.ID, Priority: r.Priority, By: r.By, Reason: r.Reason,
		Request: c.once}
	return command,
		firstError(checkName("id", r.ID), checkText("by", r.By), checkText("reason", r.Reason))
}

func (c *call) toAsk(r *v1.AskRequest) (*core.Ask, error) {
	command := &core.Ask{Namespace: c.namespace, Resource: r.Resource, By: r.By, Message: r.Message, Request: c.once}
	return command, firstError(checkPath("resource", r.Resource), checkName("message", r.Message),
		checkText("by", r.By))
}

func (c *call) toAcknowledge(r *v1.AcknowledgeRequest) (*core.Acknowledge, error) {
	command := &core.Acknowledge{Namespace: c.namespace, Resource: r.Resource, Token: leasehold.Token(r.Token),
		By: r.By, Reason: r.Reason, Request: c.once}
	return command, firstError(checkPath("resource", r.Resource), checkText("by", r.By), checkText("reason", r.Reason))
}

func (c *call) toUndefine() (*core.Undefine, error) {
	path, err := c.definitionPath()
	if err != nil {
		return nil, err
	}
	command := &core.Undefine{Namespace: c.namespace, Path: path, By: c.query.Get("by"), Reason: c.query.Get("reason"),
		Request: c.once}
	return command, firstError(checkText("by", command.By), checkText("reason", command.Reason))
}

func (c *call) toOpenSession(r *v1.SessionRequest) (*core.OpenSession, error) {
	ls, err := translate.Labels(r.Labels)
	if err != nil {
		return nil, err
	}
	command := &core.OpenSession{Namespace: c.namespace, ID: r.ID, TTL: time.Duration(r.TTL.Duration), Labels: ls,
		Request: c.once}
	switch {
	case r.TTL.Word() != "":
		return nil, invalid("a session has nothing that its ttl could be learned from: write a duration such as 30s")
	case r.TTL.None:
		return nil, invalid("ttl: a session always has one, write a duration such as \"30s\"")
	case r.TTL == v1.TTL{}:
		command.TTL = leasehold.DefaultTTL
	}
	if r.ID == "" {
		command.ID = c.sessionID()
	}
	return command, firstError(checkText("id", r.ID))
}

func (c *call) toRenewSession(*v1.Nothing) (*core.RenewSession, error) {
	command := &core.RenewSession{Namespace: c.namespace, ID: c.path("id")}
	return command, firstError(checkName("session id", command.ID))
}

func (c *call) toCloseSession() (*core.CloseSession, error) {
	abandon, err := c.flag("abandon")
	command := &core.CloseSession{Namespace: c.namespace, ID: c.path("id"), Abandon: abandon, Request: c.once}
	return command, firstError(err, checkName("session id", command.ID))
}

// warn says what is unwise about a ttl that is allowed.
func warn(ttl time.Duration) string {
	if ttl == 0 || ttl >= leasehold.ShortTTL {
		return ""
	}
	return fmt.Sprintf(
		"ttl %v is short: an ordinary pause of the holder or of the network can cost the lease; %v or more is safer",
		ttl, leasehold.ShortTTL)
}
