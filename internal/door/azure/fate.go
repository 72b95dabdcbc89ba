package azure

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/azureblob"
)

// A client that comes late with a lease that was broken gets Azure's code for the state that it finds, whatever that
// is by then, and a message that says who broke the lease, when and why: Terraform prints it, and its user would
// otherwise have to guess.

// endOf returns how the lease of a client was broken; false if it was not, or nobody remembers.
func (l *lease) endOf(guid string) (azureblob.End, bool) {
	if e, ok := azureblob.BrokenBy(l.ending); ok && e.GUID == guid {
		return e, true
	}
	for i := len(l.ends) - 1; i >= 0; i-- {
		if l.ends[i].GUID == guid {
			return l.ends[i], true
		}
	}
	return azureblob.End{}, false
}

// told returns a refusal with what became of the lease that the client believes in, and who holds it now.
func (l *lease) told(f *fault, guid string) *fault {
	e, ok := l.endOf(guid)
	if !ok || guid == "" || l.alive() && l.guid == guid {
		return f
	}
	message := fmt.Sprintf("A lease ID was specified, but the lease was broken by %s at %s", e.By, clockTime(e.At))
	if e.Why != "" {
		message += ": " + strings.TrimSuffix(e.Why, ".")
	}
	if l.alive() {
		message += fmt.Sprintf("; it is held by %s since %s", l.who(), clockTime(l.since))
	}
	return f.saying("%s.", message)
}

// clockTime returns a time as people write it, with its day if that is not today.
func clockTime(t time.Time) string {
	t, now := t.UTC(), time.Now().UTC()
	if t.Year() == now.Year() && t.YearDay() == now.YearDay() {
		return t.Format("15:04:05Z")
	}
	return t.Format("2006-01-02 15:04Z")
}

// who returns the holder, and what the lease is for.
func (l *lease) who() string {
	if l.reason == "" {
		return l.holder
	}
	return l.holder + " (" + l.reason + ")"
}
