package azure

import (
	"net/http"
	"strings"
	"time"
)

// conditions are what must hold of a blob for a request to be done.
type conditions struct {
	match, noneMatch string // tags; empty: not said
	since, until     time.Time
	failed           *fault
	asRead           bool // fails as a read does, with 304
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

// check tells why a request may not be done. exists says that the operation needs the
// blob to be there; one that makes it takes "If-None-Match: *" for "only if it is new".
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

// matches tells whether a tag is in a list of tags. Some clients leave out the quotes.
func matches(list, tag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == "*" || strings.Trim(one, `"`) == strings.Trim(tag, `"`) {
			return true
		}
	}
	return false
}
