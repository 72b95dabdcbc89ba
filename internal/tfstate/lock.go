package tfstate

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold"
)

// A LockInfo is what Terraform says about a lock. Its fields, and their order, are Terraform's.
type LockInfo struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   string // a time, which nothing is decided by
	Path      string
}

// Limits of what a client says of a lock.
const (
	MaxLockInfo = 4 << 10 // bytes as it comes
	maxLockID   = 256
)

// IDMark separates the ID of a lock from what the door adds to it in the id of a lease. It is
// forbidden in an ID, so that the two can be told apart again.
const IDMark = '~'

// ParseLockInfo reads what a client says of its lock.
func ParseLockInfo(body []byte) (info LockInfo, err error) {
	switch {
	case len(body) > MaxLockInfo:
		return info, invalid("the lock info is too long: at most %d bytes are allowed", MaxLockInfo)
	case !utf8.Valid(body):
		return info, invalid("the lock info is not valid UTF-8")
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return LockInfo{}, invalid("the lock info cannot be read: %v", err)
	}
	if info.ID, err = ParseLockID(info.ID); err != nil {
		return LockInfo{}, err
	}
	return info, nil
}

// ParseLockID checks an ID. Behind a blank there may be text that the door added when it reported
// who has the lock: people copy the whole line into force-unlock.
func ParseLockID(s string) (string, error) {
	id, _, _ := strings.Cut(s, " ")
	switch {
	case id == "":
		return "", invalid("the lock info has no ID: every lock needs one")
	case len(id) > maxLockID:
		return "", invalid("the ID of the lock has %d bytes: at most %d are allowed", len(id), maxLockID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == IDMark }):
		return "", invalid("the ID of the lock is %s: printable ASCII characters are allowed, except blanks and %q",
			brief(id), IDMark)
	}
	return id, nil
}

// A Lock is a LockInfo as the door tells it to others: enriched, the ID first, and behind
// it what only the server knows.
type Lock struct {
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

// Holder returns how a lock's client calls itself, without characters that cannot be shown.
func (l *LockInfo) Holder() string {
	if who := Shown(l.Who, leasehold.MaxName); who != "" {
		return who
	}
	return "terraform"
}

// Reason returns in a word or two what the lock is for, without characters that cannot be shown.
func (l *LockInfo) Reason() string {
	reason := strings.ToLower(strings.TrimPrefix(l.Operation, "OperationType"))
	if l.Info != "" {
		reason = strings.TrimPrefix(reason+": "+l.Info, ": ")
	}
	return Shown(reason, leasehold.MaxName)
}

// Shown returns a text of at most the given number of bytes without control characters, which could
// rule the terminal of the person who reads it.
func Shown(s string, most int) string {
	return Clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s), most)
}

// Clip shortens a text to at most the given number of bytes, and cuts no character in half.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for s != "" && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}
