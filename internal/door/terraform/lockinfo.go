package terraform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// A LockInfo is what Terraform says of a lock. Its fields, and their order, are those
// of Terraform.
type LockInfo struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   string // a time, which nothing is decided by
	Path      string
}

const (
	maxLockInfo = 4 << 10 // bytes as it comes
	maxLockID   = 256
)

// The labels of a lease that is a lock.
const (
	labelID       = "terraform/id"
	labelLockInfo = "terraform/lockinfo" // as it came
	labelVersion  = "terraform/version"
)

// ParseLockInfo reads what a client says of its lock.
func ParseLockInfo(body []byte) (info LockInfo, err error) {
	switch {
	case len(body) > maxLockInfo:
		return info, invalid("the lock info has more than %d bytes: that is the most there can be", maxLockInfo)
	case !utf8.Valid(body):
		return info, invalid("the lock info is not valid UTF-8")
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return LockInfo{}, invalid("the lock info can not be read: %v", err)
	}
	if info.ID, err = lockID(info.ID); err != nil {
		return LockInfo{}, err
	}
	return info, nil
}

// lockID checks an ID. Behind a blank there may be what this door added to it when it told
// somebody who has the lock: see told.
func lockID(s string) (string, error) {
	id, _, _ := strings.Cut(s, " ")
	switch {
	case id == "":
		return "", invalid("the lock info has no ID: a lock needs one")
	case len(id) > maxLockID:
		return "", invalid("the ID of the lock has %d bytes: at most %d are allowed", len(id), maxLockID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == idMark }):
		return "", invalid("the ID of the lock is %s: it can have printable ASCII characters without blanks and %q", brief(id), idMark)
	}
	return id, nil
}

// holder is how a lock's client calls itself, fit to be shown.
func (l *LockInfo) holder() string {
	who := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, l.Who)
	if who == "" {
		return "terraform"
	}
	return clip(who, leasehold.MaxName)
}

// reason says what the lock is for, in a word or two.
func (l *LockInfo) reason() string {
	reason := strings.ToLower(strings.TrimPrefix(l.Operation, "OperationType"))
	if l.Info != "" {
		reason = strings.TrimPrefix(reason+": "+l.Info, ": ")
	}
	return clip(reason, leasehold.MaxName)
}

// clip shortens a text to so many bytes, and no letter to half.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for s != "" && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// labels are those of the lease that is the lock.
func (l *LockInfo) labels(verbatim []byte) leasehold.Labels {
	var compact bytes.Buffer
	if json.Compact(&compact, verbatim) != nil {
		compact.Reset()
		compact.Write(verbatim)
	}
	return leasehold.Labels{{Key: labelID, Value: l.ID}, {Key: labelLockInfo, Value: compact.String()}, {Key: labelVersion, Value: clip(l.Version, 64)}}
}

func label(ls leasehold.Labels, key string) string {
	for _, l := range ls {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// lockOf is the ID of the lock that a lease is: that of its client, or the lease's own if
// it came in by another door.
func lockOf(l *leasehold.Lease) string {
	if id := label(l.Labels, labelID); id != "" {
		return id
	}
	return l.ID
}

// infoOf is what is known of a lock: what its client said, or what any lease tells.
func infoOf(l *leasehold.Lease) LockInfo {
	info := LockInfo{Operation: l.Reason, Who: l.Holder}
	if said := label(l.Labels, labelLockInfo); said != "" {
		_ = json.Unmarshal([]byte(said), &info) // it was read before
	}
	info.ID = lockOf(l)
	if _, err := time.Parse(time.RFC3339, info.Created); err != nil {
		// A client that can not read the time would not read the rest either.
		info.Created = l.Acquired.UTC().Format(time.RFC3339Nano)
	}
	return info
}

// Told is a LockInfo as this door tells it to others: enriched, the ID first, and behind
// it what only the server knows.
type Told struct {
	LockInfo
	Lock      string     `json:"Lock"` // the ID alone, whatever was added to it
	State     string     `json:"State"`
	Token     uint64     `json:"Token,omitempty"`
	Since     *time.Time `json:"Since,omitempty"`
	Expires   *time.Time `json:"Expires,omitempty"`
	Session   string     `json:"Session,omitempty"`
	Waiting   int        `json:"Waiting"`
	Position  int        `json:"Position,omitempty"`
	After     string     `json:"After,omitempty"` // of which unclean end the holder was warned
	AddedInfo string     `json:"Detail,omitempty"`
}

// tell enriches the lock that is in somebody's way. version is that of the client that
// is told: up to 1.14 it shows nothing of the answer but the ID.
func tell(e *leasehold.Error, version string, now time.Time) *Told {
	t := &Told{Waiting: e.Waiting, Position: e.Position, AddedInfo: e.Message}
	if e.Lease == nil {
		t.LockInfo = LockInfo{ID: "nobody (" + e.Message + ")", Created: time.Time{}.Format(time.RFC3339)}
		return t
	}
	t.fill(e.Lease)
	detail := t.detail(e, now)
	t.Info = strings.TrimPrefix(t.Info+"; "+detail, "; ")
	if onlyShowsID(version) {
		t.ID += " (" + detail + ")"
	}
	return t
}

// fill takes what is known of a lock.
func (t *Told) fill(l *leasehold.Lease) {
	t.LockInfo, t.Lock, t.State, t.Token, t.Session = infoOf(l), lockOf(l), l.State.String(), uint64(l.Token), l.Session
	t.Since, t.Expires = moment(l.Acquired), moment(l.Expires)
	if l.After != nil {
		t.After = fmt.Sprintf("the lock of %s before it ended uncleanly (%v)", l.After.Holder, l.After.How)
	}
}

// detail is what somebody wants to know who finds a lock, in one line.
func (t *Told) detail(e *leasehold.Error, now time.Time) string {
	l := e.Lease
	if l.Acquired.IsZero() { // it is over, and the state rests after it
		return e.Message
	}
	parts := []string{l.Holder}
	if l.Reason != "" {
		parts = append(parts, l.Reason)
	}
	parts = append(parts, "since "+clockTime(l.Acquired, now))
	switch {
	case l.State == leasehold.Breaking:
		parts = append(parts, "ends "+clockTime(l.Expires, now))
	case !l.Expires.IsZero():
		parts = append(parts, "expires "+clockTime(l.Expires, now)+" unless renewed")
	}
	switch {
	case e.Position > 0:
		parts = append(parts, "you are "+ordinal(e.Position)+" in the queue")
	case e.Waiting > 0:
		parts = append(parts, strconv.Itoa(e.Waiting)+" waiting")
	}
	return strings.Join(parts, ", ")
}

// clockTime writes a moment as people say it, with its day if that is not today.
func clockTime(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05Z")
	}
	return t.Format("2006-01-02 15:04Z")
}

func ordinal(n int) string {
	ending := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return strconv.Itoa(n) + ending
}

// onlyShowsID tells the versions of Terraform that print their own lock info instead of
// that of the holder. OpenTofu shows the holder's from 1.9 on, and has versions of its own:
// up to 1.14 it is told both ways.
func onlyShowsID(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	return version == "" || major == "0" || major == "1" && (err != nil || n < 15)
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
