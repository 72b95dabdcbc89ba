package terraform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// What a lock says of itself. Terraform sends a description with LOCK, and shows the one that
// comes back with a refusal to the person who has to wait. So the description is kept as it
// came, in the lease's labels, and is completed with what only the server knows: since when,
// until when, and who else waits.

// The labels of a lease that is a lock.
const (
	labelID       = "terraform/id"
	labelLockInfo = "terraform/lockinfo" // as it came
	labelVersion  = "terraform/version"
)

// labelsOf returns the labels of the lease that is the lock. They keep the client's own words,
// which other clients are shown.
func labelsOf(l *tfstate.LockInfo, verbatim []byte) leasehold.Labels {
	var compact bytes.Buffer
	if json.Compact(&compact, verbatim) != nil {
		compact.Reset()
		compact.Write(verbatim)
	}
	return leasehold.Labels{
		{Key: labelID, Value: l.ID},
		{Key: labelLockInfo, Value: compact.String()},
		{Key: labelVersion, Value: tfstate.Shown(l.Version, 64)},
	}
}

func label(ls leasehold.Labels, key string) string {
	for _, l := range ls {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// infoOf returns what is known of a lock: what its client said, or else what any lease has.
func infoOf(l *leasehold.Lease) tfstate.LockInfo {
	info := tfstate.LockInfo{Operation: l.Reason, Who: l.Holder}
	if said := label(l.Labels, labelLockInfo); said != "" {
		_ = json.Unmarshal([]byte(said), &info) // it was read before
	}
	info.ID = lockOf(l)
	if _, err := time.Parse(time.RFC3339, info.Created); err != nil {
		// Terraform refuses a description whose time it cannot parse, and would show none of
		// it.
		info.Created = l.Acquired.UTC().Format(time.RFC3339Nano)
	}
	return info
}

// tell describes the lock that is in a client's way, with more than Terraform says of its own.
// version is the client's: up to 1.14 Terraform shows nothing of the answer but the ID, so the
// details go in there.
func tell(e *leasehold.Error, version string, now time.Time) *tfstate.Lock {
	t := &tfstate.Lock{Waiting: e.Waiting, Position: e.Position, AddedInfo: e.Message}
	if e.Lease == nil {
		t.LockInfo = tfstate.LockInfo{ID: "nobody (" + e.Message + ")", Created: time.Time{}.Format(time.RFC3339)}
		return t
	}
	describeLock(t, e.Lease)
	detail := detailOf(e, now)
	t.Info = strings.TrimPrefix(t.Info+"; "+detail, "; ")
	if onlyShowsID(version) {
		t.ID += " (" + detail + ")"
	}
	return t
}

// describeLock fills in what is known of a lock.
func describeLock(t *tfstate.Lock, l *leasehold.Lease) {
	t.LockInfo, t.Lock, t.State, t.Token, t.Session = infoOf(l), lockOf(l), l.State.String(), uint64(l.Token), l.Session
	t.Since, t.Expires = moment(l.Acquired), moment(l.Expires)
	if l.After != nil {
		t.After = fmt.Sprintf("the lock of %s before it ended uncleanly (%v)", l.After.Holder, l.After.How)
	}
}

// detailOf returns who holds a lock, since and until when, and who waits, in one line.
func detailOf(e *leasehold.Error, now time.Time) string {
	l := e.Lease
	if l.Acquired.IsZero() { // it has ended, and its grace is not over
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

// clockTime returns a time as people write it, with its day if that is not today.
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

// onlyShowsID reports whether a version of Terraform prints its own lock info instead of the
// holder's. OpenTofu shows the holder's from 1.9 on, and counts its versions itself: up to 1.14
// it gets both.
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
