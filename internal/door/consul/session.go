package consul

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// A sessionBody is what a client says of a session that it creates.
type sessionBody struct {
	Name          string
	Node          *string
	LockDelay     *lockDelay
	Behavior      string
	TTL           string
	Checks        *[]string
	NodeChecks    *[]string
	ServiceChecks []serviceCheck
}

// A lockDelay is a duration as text or as a number. Small numbers are seconds, others nanoseconds.
type lockDelay time.Duration

// UnmarshalJSON reads a lock-delay.
func (d *lockDelay) UnmarshalJSON(text []byte) error {
	var value any
	if number, err := strconv.ParseFloat(string(text), 64); err == nil { // as mostly
		value = number
	} else if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	const seconds = 1000 // a number below it is one of seconds
	var delay time.Duration
	switch v := value.(type) {
	case string:
		var err error
		if delay, err = time.ParseDuration(v); err != nil {
			return err
		}
	case float64:
		delay = time.Duration(max(0, min(v, float64(time.Hour))))
	}
	if delay > 0 && delay < seconds {
		delay *= time.Second
	}
	*d = lockDelay(min(max(0, delay), maxLockDelay))
	return nil
}

// maxBody is how long the body of a request about a session may be.
const maxBody = 64 << 10

// createSession opens a session.
func (c *call) createSession() error {
	s, ttl, err := c.sentSession()
	if err != nil {
		return err
	}
	s.ID, s.CreateIndex = newID(), indexOf(leasehold.Revision(c.door.newest.Load()))
	_, err = c.patiently(&core.OpenSession{Namespace: c.namespace(), ID: s.ID, TTL: ttl, Labels: s.labels()})
	if err != nil {
		return err
	}
	return c.send(struct{ ID string }{s.ID})
}

// sentSession reads the session that is to be created, and how long it lasts without being renewed.
func (c *call) sentSession() (s session, ttl time.Duration, err error) {
	body := sessionBody{}
	if c.r.ContentLength != 0 {
		if err := c.readJSON(&body, maxBody, false); err != nil && !errors.Is(err, io.EOF) {
			return s, 0, err
		}
	}
	s = session{Name: body.Name, Node: nodeName, LockDelay: defaultLockDelay, Behavior: body.Behavior, TTL: body.TTL,
		NodeChecks: []string{aliveCheck}}
	if body.LockDelay != nil {
		s.LockDelay = time.Duration(*body.LockDelay)
	}
	if err := s.check(&body); err != nil {
		return s, 0, err
	}
	host, _, _ := net.SplitHostPort(c.r.RemoteAddr)
	s.holder = holderOf(s.Name, host)
	c.holder = s.holder
	ttl, err = c.door.ttlOf(s.TTL)
	return s, ttl, err
}

// check says what is wrong with a session, and sets what follows from what was said.
func (s *session) check(body *sessionBody) error {
	if body.Node != nil && *body.Node != "" && *body.Node != nodeName {
		return failed(leasehold.NotFound, "Missing node registration")
	}
	switch s.Behavior {
	case "":
		s.Behavior = release
	case release, remove:
	default:
		return failed(leasehold.Invalid, "Invalid Behavior setting '%s'", s.Behavior)
	}
	if body.Checks != nil && len(*body.Checks) == 0 {
		s.NodeChecks = []string{}
	}
	if body.NodeChecks != nil {
		s.NodeChecks = *body.NodeChecks
	}
	checks := slices.Clone(s.NodeChecks)
	if body.Checks != nil {
		checks = append(checks, *body.Checks...)
	}
	for _, check := range body.ServiceChecks {
		checks = append(checks, check.ID)
	}
	for _, check := range checks {
		if check != aliveCheck {
			return failed(leasehold.NotFound, "Missing check '%s' registration", check)
		}
	}
	s.NodeChecks = slices.Compact(s.NodeChecks)
	if len(s.Name) > leasehold.MaxName {
		return badRequest("Name has %d bytes: at most %d are allowed", len(s.Name), leasehold.MaxName)
	}
	return nil
}

// ttlOf returns how long a session lasts that asks for a TTL.
func (d *Door) ttlOf(text string) (time.Duration, error) {
	if text == "" {
		return lasting, nil
	}
	ttl, err := time.ParseDuration(text)
	switch {
	case err != nil || len(text) > 64:
		return 0, failed(leasehold.Invalid, "Session TTL '%s' invalid: %v", text, err)
	case ttl == 0:
		return lasting, nil
	case ttl < minTTL || ttl > maxTTL:
		return 0, failed(leasehold.Invalid, "Invalid Session TTL '%d', must be between [%v=%v]", ttl, minTTL, maxTTL)
	case d.config.Exact:
		return ttl, nil
	}
	return late * ttl, nil
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	text := make([]byte, 0, len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
	text = append(hex.AppendEncode(text, b[0:4]), '-')
	text = append(hex.AppendEncode(text, b[4:6]), '-')
	text = append(hex.AppendEncode(text, b[6:8]), '-')
	text = append(hex.AppendEncode(text, b[8:10]), '-')
	return string(hex.AppendEncode(text, b[10:]))
}

// sessionName returns the id of the session that the path names.
func (c *call) sessionName() (string, error) {
	switch {
	case c.name == "":
		return "", badRequest("Missing session")
	case len(c.name) > leasehold.MaxName:
		return "", badRequest("a session id of %d bytes is too long", len(c.name))
	}
	return c.name, nil
}

// destroySession ends a session. What it holds ends as if its holder had died: the lock-delay begins. That is how
// Consul does it, no matter who ends the session: to release a lock at once there is ?release.
func (c *call) destroySession() error {
	id, err := c.sessionName()
	if err != nil {
		return err
	}
	// What a session is does not change: any server may say. The command finds out whether it is still there.
	s, err := c.session(engine.WithStale(c.ctx), id)
	if err != nil {
		s, err = c.session(c.ctx, id)
	}
	if errors.Is(err, leasehold.ErrNotFound) || errors.Is(err, leasehold.ErrLost) {
		return c.send(true)
	}
	if err != nil {
		return err
	}
	_, err = c.patiently(&core.CloseSession{Namespace: c.namespace(), ID: id, Abandon: s.LockDelay > 0})
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) && !errors.Is(err, leasehold.ErrLost) {
		return err
	}
	return c.send(true)
}

// session reads one session.
func (c *call) session(ctx context.Context, id string) (s session, err error) {
	var found leasehold.Session
	var failure *leasehold.Error
	err = c.door.backend.Read(ctx, func(v core.View) { found, failure = v.Session(c.namespace(), id) })
	if err != nil {
		return s, err
	}
	if failure != nil {
		return s, failure
	}
	return sessionOf(found), nil
}

// renewSession makes a session last for its TTL from now.
func (c *call) renewSession() error {
	id, err := c.sessionName()
	if err != nil {
		return err
	}
	answer, err := c.patiently(&core.RenewSession{Namespace: c.namespace(), ID: id})
	switch {
	case errors.Is(err, leasehold.ErrNotFound), errors.Is(err, leasehold.ErrLost):
		message := fmt.Sprintf("Session id '%s' not found", id)
		return &door.Fault{Err: &leasehold.Error{Code: leasehold.Lost, Message: message}, Status: http.StatusNotFound}
	case err != nil:
		return err
	case answer.Session == nil:
		return engine.Undecided("the engine answered without a session")
	}
	return c.send([]session{sessionOf(*answer.Session)})
}

// sessionEvents are what changes a list of sessions.
var sessionEvents = []leasehold.Kind{leasehold.SessionOpened, leasehold.SessionEnded}

// sessionInfo shows one session, in a list that has none if there is none.
func (c *call) sessionInfo() error {
	id, err := c.sessionName()
	if err != nil {
		return err
	}
	return c.show(engine.Filter{Session: id, Kinds: sessionEvents}, func() (result, error) {
		var found leasehold.Session
		var failure *leasehold.Error
		var now leasehold.Revision
		err := c.look(func(v core.View) {
			found, failure = v.Session(c.namespace(), id)
			now = v.History(c.namespace()).Revision
		})
		list := []session{}
		if err == nil && failure == nil {
			list = append(list, sessionOf(found))
		}
		return result{index: indexOf(now), value: list}, err
	})
}

// listSessions shows all sessions.
func (c *call) listSessions() error {
	return c.showSessions(c.allSessions)
}

// showSessions shows what is read of all sessions.
func (c *call) showSessions(read func() (result, error)) error {
	may := func() error {
		return c.look(func(v core.View) { _, _ = v.Sessions(c.namespace(), "", "", 1) })
	}
	return c.showList(engine.Filter{Kinds: sessionEvents}, may, read)
}

// nodeSessions shows the sessions of a node. All are of the one that there is.
func (c *call) nodeSessions() error {
	if c.name == "" {
		return badRequest("Missing node name")
	}
	return c.showSessions(func() (result, error) {
		r, err := c.allSessions()
		if c.name != nodeName {
			r.value = []session{}
		}
		return r, err
	})
}

// sessionSize is about how many bytes a session has in an answer, beside its name and id.
const sessionSize = 200

// allSessions reads all sessions, some at a time: one that is opened or ended meanwhile may be among them or not.
func (c *call) allSessions() (r result, err error) {
	list, size := []session{}, 0
	for next, more := "", true; more; {
		var page []leasehold.Session
		err := c.look(func(v core.View) {
			page, next = v.Sessions(c.namespace(), "", next, leasehold.MaxPage)
			if r.index == 0 { // what happens while the rest is read is told to who waits for it
				r.index = indexOf(v.History(c.namespace()).Revision)
			}
		})
		if err != nil {
			return r, err
		}
		for _, s := range page {
			list = append(list, sessionOf(s))
			size += sessionSize + len(s.ID) + len(list[len(list)-1].Name)
		}
		if err := c.grown("of sessions", size); err != nil {
			return r, err
		}
		more = next != ""
	}
	r.value = list
	return r, nil
}

// readJSON reads the body of a request as Consul does: what follows the value is not looked at, and an empty body is
// io.EOF. If it is strict, fields that are not known are wrong.
func (c *call) readJSON(into any, most int64, strict bool) error {
	if c.r.ContentLength > most {
		return tooLarge(c.r.ContentLength, most)
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if long := (*http.MaxBytesError)(nil); errors.As(err, &long) {
		return tooLarge(0, most)
	}
	if err == nil {
		err = door.CheckParts(body)
	}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(body))
		if strict {
			decoder.DisallowUnknownFields()
		}
		err = decoder.Decode(into)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return badRequest("Request decode failed: %v", strings.TrimSpace(err.Error()))
	}
	return err
}
