package native

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// newID makes the id of a lease or a session for a caller that proposed none: 26
// characters with 130 bits of chance in them.
func newID() string { return strings.ToLower(rand.Text()) }

// sessionID makes the id of a session for a caller that proposed none. If the
// request has a name of its own, the id comes from that, so that a second try asks
// for the same session and not for another one under the same name.
func sessionID(once core.Request) string {
	if once == (core.Request{}) {
		return newID()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", once.Key, once.Session, once.Sequence))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

func (c *call) toAcquire(a *v1.AcquireRequest) (*core.Acquire, error) {
	ls, err := labels(a.Labels)
	if err != nil {
		return nil, err
	}
	command := &core.Acquire{
		Namespace: c.namespace, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Labels: ls, Reason: a.Reason,
		TTL: time.Duration(a.TTL.Duration), Session: a.Session, Wait: time.Duration(a.Wait), Grace: time.Duration(a.Grace),
		HoldLimit: time.Duration(a.HoldLimit), Priority: a.Priority, Request: c.once,
	}
	if a.TTL == (v1.TTL{}) && a.Session == "" {
		command.TTL = leasehold.DefaultTTL
	}
	if a.ID == "" {
		command.ID, c.made = newID(), true
	}
	return command, firstError(
		checkPath("resource", a.Resource), checkHolder(a.Holder), checkText("id", a.ID), checkText("session", a.Session),
		checkText("reason", a.Reason), command.Validate(),
	)
}

// checkHolder has a sentence of its own because a first request often has none.
func checkHolder(s string) error {
	if s == "" {
		return invalid(`holder is missing: say who asks, for example "holder": "ci@build-7"`)
	}
	return checkText("holder", s)
}

func (c *call) toRenew(r *v1.RenewRequest) (*core.Renew, error) {
	command := &core.Renew{Namespace: c.namespace, ID: r.ID}
	return command, firstError(checkName("id", r.ID), command.Validate())
}

func (c *call) toRelease(r *v1.ReleaseRequest) (*core.Release, error) {
	command := &core.Release{Namespace: c.namespace, ID: r.ID, Request: c.once}
	return command, firstError(checkName("id", r.ID), command.Validate())
}

func (c *call) toChange(r *v1.ChangeRequest) (*core.Change, error) {
	command := &core.Change{Namespace: c.namespace, ID: r.ID, Holder: r.Holder, NewID: r.NewID, Request: c.once}
	return command, firstError(checkName("id", r.ID), checkText("holder", r.Holder), checkText("new_id", r.NewID), command.Validate())
}

func (c *call) toBreak(r *v1.BreakRequest) (*core.Break, error) {
	command := &core.Break{
		Namespace: c.namespace, ID: r.ID, Resource: r.Resource, Token: leasehold.Token(r.Token), By: r.By, Reason: r.Reason,
		Remains: r.Period == nil, Request: c.once,
	}
	if r.Period != nil {
		command.Period = time.Duration(*r.Period)
	}
	err := firstError(checkText("id", r.ID), checkText("by", r.By), checkText("reason", r.Reason), command.Validate())
	if err == nil && r.Resource != "" {
		err = checkPath("resource", r.Resource)
	}
	return command, err
}

func (c *call) toMove(r *v1.MoveRequest) (*core.Move, error) {
	command := &core.Move{Namespace: c.namespace, ID: r.ID, Priority: r.Priority, By: r.By, Reason: r.Reason, Request: c.once}
	return command, firstError(checkName("id", r.ID), checkText("by", r.By), checkText("reason", r.Reason), command.Validate())
}

func (c *call) toAsk(r *v1.AskRequest) (*core.Ask, error) {
	command := &core.Ask{Namespace: c.namespace, Resource: r.Resource, By: r.By, Message: r.Message, Request: c.once}
	return command, firstError(checkPath("resource", r.Resource), checkName("message", r.Message), checkText("by", r.By), command.Validate())
}

func (c *call) toOpenSession(r *v1.SessionRequest) (*core.OpenSession, error) {
	ls, err := labels(r.Labels)
	if err != nil {
		return nil, err
	}
	command := &core.OpenSession{Namespace: c.namespace, ID: r.ID, TTL: time.Duration(r.TTL.Duration), Labels: ls, Request: c.once}
	switch {
	case r.TTL.None:
		return nil, invalid("ttl: a session always has one, write a duration such as \"30s\"")
	case r.TTL == v1.TTL{}:
		command.TTL = leasehold.DefaultTTL
	}
	if r.ID == "" {
		command.ID = sessionID(c.once)
	}
	return command, firstError(checkText("id", r.ID), command.Validate())
}

func (c *call) toRenewSession() (*core.RenewSession, error) {
	command := &core.RenewSession{Namespace: c.namespace, ID: c.r.PathValue("id")}
	return command, firstError(checkName("session id", command.ID), command.Validate())
}

func (c *call) toCloseSession() (*core.CloseSession, error) {
	command := &core.CloseSession{Namespace: c.namespace, ID: c.r.PathValue("id"), Request: c.once}
	return command, firstError(checkName("session id", command.ID), command.Validate())
}

// labels sorts what a request says of its sender.
func labels(m map[string]string) (leasehold.Labels, error) {
	if len(m) == 0 {
		return nil, nil
	}
	ls := make(leasehold.Labels, 0, len(m))
	for k, v := range m {
		if err := firstError(checkName("the key of a label", k), checkCharacters("label "+brief(k), v)); err != nil {
			return nil, err
		}
		ls = append(ls, leasehold.Label{Key: k, Value: v})
	}
	slices.SortFunc(ls, func(a, b leasehold.Label) int { return strings.Compare(a.Key, b.Key) })
	return ls, nil
}

// warn says what is unwise about a ttl that is allowed.
func warn(ttl time.Duration) string {
	if ttl == 0 || ttl >= leasehold.ShortTTL {
		return ""
	}
	return fmt.Sprintf("ttl %v is short: an ordinary pause of the holder or of the network can cost the lease; %v or more is safer", ttl, leasehold.ShortTTL)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
