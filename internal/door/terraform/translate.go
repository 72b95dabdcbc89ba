package terraform

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A place is what a path names.
type place struct {
	state string
	lock  bool // the path is that of its lock
}

// placeOf reads a path in any of the dialects.
//
//	/terraform/STATE[/lock]                                  ours
//	/terraform/state?state=STATE, /terraform/lock?state=…    as terraform-backend-etcd has it
//	/api/v4/projects/PROJECT/terraform/state/NAME[/lock]     GitLab
//	/api/packages/OWNER/terraform/state/NAME[/lock]          Gitea
func placeOf(escaped string, query url.Values) (at place, err error) {
	segments, err := unescape(escaped)
	if err != nil {
		return at, err
	}
	switch {
	case len(segments) >= 7 && segments[0] == "api" && segments[1] == "v4":
		segments = append([]string{segments[3]}, segments[6:]...)
	case len(segments) >= 6 && segments[0] == "api" && segments[1] == "packages":
		segments = append([]string{segments[2]}, segments[5:]...)
	case segments[0] == "api":
		return at, nil // and no name of a state
	default:
		segments = segments[1:]
	}
	if query.Has("state") {
		if len(segments) != 1 || segments[0] != "state" && segments[0] != "lock" {
			return at, invalid("the state is named by the path and by the query: use /terraform/STATE, or /terraform/state?state=STATE")
		}
		name := strings.Trim(query.Get("state"), "/")
		return place{name, segments[0] == "lock"}, tfstate.CheckState(name)
	}
	if last := len(segments) - 1; last >= 1 && segments[last] == "lock" {
		at.lock, segments = true, segments[:last]
	}
	if at.state = strings.Join(segments, "/"); at.state == "" {
		return at, nil
	}
	return at, tfstate.CheckState(at.state)
}

// unescape splits a path, which the server has found to be tidy.
func unescape(escaped string) (segments []string, err error) {
	for part := range strings.SplitSeq(strings.Trim(escaped, "/"), "/") {
		segment, err := url.PathUnescape(part)
		if err != nil {
			return nil, invalid("the path can not be read: %v", err)
		}
		segments = append(segments, segment)
	}
	return segments, nil
}

func checkText(what, s string, most int) error {
	switch {
	case s == "":
		return invalid("%s is missing", what)
	case len(s) > most:
		return invalid("%s has %d bytes: at most %d are allowed", what, len(s), most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return invalid("%s is %s: it has to be UTF-8 without control characters", what, brief(s))
	}
	return nil
}

// params are what a query may say. All of them may stand with any verb: Terraform is given
// one address, and uses it for all.
var params = []string{
	"ID", "namespace", "state", "wait", "session", "ttl", "lease_ttl", "force",
	"version", "versions", "info", "prefix", "after", "limit",
}

func readQuery(raw string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("the query can not be read: %v", err)
	}
	for name, values := range query {
		if !slices.Contains(params, name) {
			return nil, invalid("the query has %s, which is unknown here; known are: %s", brief(name), strings.Join(params, ", "))
		}
		if len(values) > 1 {
			return nil, invalid("%s stands %d times in the query: give it once", name, len(values))
		}
	}
	return query, nil
}

// duration reads a time such as 10m, or a number of seconds; 0 if there is none.
func (c *call) duration(name string, most time.Duration) (time.Duration, error) {
	s := c.query.Get(name)
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if seconds, bad := strconv.ParseUint(s, 10, 31); bad == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d < 0 || d > most {
		return 0, invalid("%s %s is not a time from 0 to %v, such as 10m", name, brief(s), most)
	}
	return d, nil
}

func (c *call) flag(name string) (bool, error) {
	if !c.query.Has(name) {
		return false, nil
	}
	switch s := c.query.Get(name); s {
	case "", "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, invalid("%s %s is neither true nor false", name, brief(s))
	}
}

func (c *call) number(name string, otherwise, most uint64) (uint64, error) {
	s := c.query.Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, invalid("%s %s is not a number from 1 to %d", name, brief(s), most)
	}
	return n, nil
}

// toAcquire makes of a lock the lease that it is. How long that lasts is, in this order: as
// long as the session that the query names; the TTL that it names; what is defined for the
// state; for ever.
func (c *call) toAcquire(info *tfstate.LockInfo, verbatim []byte, d leasehold.Definition) (*core.Acquire, error) {
	wait, badWait := c.duration("wait", leasehold.MaxWait)
	ttl, badTTL := c.duration("ttl", leasehold.MaxTTL)
	lease, badLease := c.duration("lease_ttl", leasehold.MaxTTL)
	if err := firstError(badWait, badTTL, badLease); err != nil {
		return nil, err
	}
	command := &core.Acquire{
		Namespace: c.namespace, Resource: c.path, Holder: holderOf(info), Reason: reasonOf(info), Labels: labelsOf(info, verbatim),
		Session: c.query.Get("session"), Wait: wait, TTL: max(ttl, lease),
	}
	if command.Session == "" && command.TTL == 0 {
		if command.TTL = d.DefaultTTL; command.TTL == 0 {
			command.TTL = d.LargestTTL
		}
	}
	command.ID = info.ID
	return command, command.Validate()
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

// brief keeps what a caller sent short enough, and clean enough, to tell it back.
func brief(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
