package azure

import (
	"net/http"
	"strings"
	"time"
)

// conditions are the conditional headers of a request: they must hold of a blob for it to be done.
type conditions struct {
	match, noneMatch string // tags; empty: not said
	since, until     time.Time
	failed           *fault
	asRead           bool // fails as a read does, with 304
}

// A guard is what a request says must hold: the lease that it is made under, and conditions.
type guard struct {
	guid string // of the lease; empty: none
	conditions
}

// readGuard reads the guard of a request.
func (c *call) readGuard() (g guard, err error) {
	if g.guid, err = c.leaseHeader(); err != nil {
		return g, err
	}
	g.conditions, err = c.readConditions("")
	return g, err
}

// readConditions reads the conditional headers; with a prefix those of a copy's source.
func (c *call) readConditions(prefix string) (q conditions, err error) {
	q.failed = errCondition
	if prefix != "" {
		q.failed = errSourceCondition
	}
	h := c.r.Header
	q.match, q.noneMatch = h.Get(prefix+"If-Match"), h.Get(prefix+"If-None-Match")
	q.asRead = c.r.Method == http.MethodGet || c.r.Method == http.MethodHead
	for _, f := range []struct {
		name string
		at   *time.Time
	}{{prefix + "If-Modified-Since", &q.since}, {prefix + "If-Unmodified-Since", &q.until}} {
		value := h.Get(f.name)
		if value == "" {
			continue
		}
		if *f.at, err = http.ParseTime(value); err != nil {
			return q, badHeader(f.name, value)
		}
	}
	return q, nil
}

// check returns why a request may not be done. exists says that the operation needs the blob to exist; one that
// creates it takes "If-None-Match: *" as "only if it is new", which is how the SDKs upload without overwriting.
func (q *conditions) check(i *item, exists bool) error {
	switch {
	case q.match != "" && !(i.found && matches(q.match, i.ETag)):
		return q.failed
	case !i.found:
		return nil
	case q.noneMatch == "*" && !exists:
		return errBlobExists
	case q.noneMatch != "" && matches(q.noneMatch, i.ETag):
		return q.unmodified()
	}
	// HTTP dates have whole seconds.
	modified := time.Unix(0, i.Modified).Truncate(time.Second)
	switch {
	case !q.since.IsZero() && !modified.After(q.since):
		return q.unmodified()
	case !q.until.IsZero() && modified.After(q.until):
		return q.failed
	}
	return nil
}

func (q *conditions) unmodified() *fault {
	if q.asRead {
		return errNotModified
	}
	return q.failed
}

// matches reports whether a tag is in a list of tags. Some clients leave out the quotes.
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || strings.Trim(one, `"`) == strings.Trim(tag, `"`) {
			return true
		}
	}
	return false
}

// checkUse returns why a request with a lease id, or without one, may not use a blob. A read without an id is
// always allowed; a request that names a lease fails if that lease is not the one that holds, so that a writer
// which lost its lease finds out.
func (l *lease) checkUse(guid string, write bool) error {
	switch {
	case l.alive() && guid == "" && write:
		return errLeaseIDMissing
	case guid == "":
		return nil
	case l.alive() && guid == l.guid:
		return nil
	case l.alive():
		return l.told(errBlobMismatch, guid)
	case guid == l.guid:
		return l.told(errLeaseLost, guid)
	}
	return l.told(errBlobNoLease, guid)
}

// checkContainer returns why a request with a lease id may not use a container. Only deleting it needs an id.
func (l *lease) checkContainer(guid string, deletion bool) error {
	switch {
	case l.alive() && guid == "" && deletion:
		return errLeaseIDMissing.saying(
			"There is currently a lease on the container and no lease ID was specified in the request.")
	case guid == "" || l.alive() && guid == l.guid:
		return nil
	case l.alive():
		return l.told(errContainerMismatch, guid)
	}
	return l.told(errContainerNoLease, guid)
}
