package access

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

// readsRecord reports whether the asker may read the record at a path.
func (v *view) readsRecord(namespace, path string) bool {
	return readsRecord(v.permit, v.door, namespace, path, v.in.OwnerOfRecord(namespace, path))
}

// readsRecord reports whether somebody may read the record at a path. What clients of a foreign protocol keep is read
// through their own door, or with a verb of its own.
func readsRecord(p *policy.Permit, door, namespace, path string, owner *policy.Owner) bool {
	return p.May(policy.RecordRead, namespace, path, owner) &&
		(!policy.IsForeign(path) || policy.IsForeignDoor(door) || p.May(policy.Foreign, namespace, path, nil))
}

// mayReadRecord is readsRecord for a record that is asked for by its path.
func (v *view) mayReadRecord(namespace, path string) bool {
	if v.readsRecord(namespace, path) {
		v.shown = true
		return true
	}
	v.denyRecord(namespace, path)
	return false
}

// denyRecord refuses what the asker may not read. Who has the right to records lacks the one to foreign ones.
func (v *view) denyRecord(namespace, path string) {
	verb := policy.RecordRead
	if v.permit.May(verb, namespace, path, v.self()) && policy.IsForeign(path) {
		verb = policy.Foreign
	}
	v.deny(verb, namespace, path)
}

// Record: record-read.
func (v *view) Record(namespace, path string, at leasehold.Revision) (*leasehold.Record, *leasehold.Error) {
	if !v.mayReadRecord(namespace, path) {
		return v.in.Record(nowhere, path, 0)
	}
	return v.in.Record(namespace, path, at)
}

// StandsFor: record-read, of the record that shows the holder.
func (v *view) StandsFor(namespace, path, id string) (holder string, other bool) {
	if !v.mayReadRecord(namespace, path) {
		return "", false
	}
	return v.in.StandsFor(namespace, path, id)
}

// Version: record-read.
func (v *view) Version(namespace, path string, revision leasehold.Revision) (leasehold.Version, *leasehold.Error) {
	if !v.mayReadRecord(namespace, path) {
		return v.in.Version(nowhere, path, revision)
	}
	return v.in.Version(namespace, path, revision)
}

// Versions: record-read.
func (v *view) Versions(
	namespace, path string, before leasehold.Revision, most int,
) (list []leasehold.Version, next leasehold.Revision) {
	if !v.mayReadRecord(namespace, path) {
		return nil, 0
	}
	return v.in.Versions(namespace, path, before, most)
}

// Keeps: record-read.
func (v *view) Keeps(namespace, path string) int {
	if !v.mayReadRecord(namespace, path) {
		return 0
	}
	return v.in.Keeps(namespace, path)
}

// NamesLarge: admin, of the cluster. To others it would tell whether somebody has a value that they know.
func (v *view) NamesLarge(d leasehold.Digest) bool {
	return v.permit.MayCluster(policy.Admin) && v.in.NamesLarge(d)
}

// Records: record-read, of each. Counts are of what may be read.
func (v *view) Records(namespace string, q core.RecordQuery) (core.RecordPage, *leasehold.Error) {
	if from, sealed := strings.CutPrefix(q.From, sealed); sealed {
		// A door goes on after a name by adding a zero byte to it.
		q.From = v.open(q.From[:len(q.From)-len(from)]+strings.TrimSuffix(from, "\x00")) + "\x00"
	}
	spans := v.spans(namespace, q.From, q.To)
	if len(spans) == 0 {
		v.denyRecord(namespace, q.From)
		page, failure := v.in.Records(nowhere, core.RecordQuery{})
		return page, failure
	}
	v.shown = true
	if len(spans) == 1 && spans[0] == (span{q.From, q.To, true}) {
		return v.in.Records(namespace, q)
	}
	// To search and order only what may be read, a page at a time, would show how much there is besides.
	if q.Searches() {
		v.shown = false
		v.denyRecord(namespace, q.From)
		return v.in.Records(nowhere, core.RecordQuery{})
	}
	page, failure := v.pageOf(namespace, spans, q)
	if failure == nil && q.Count {
		page.Count, failure = v.count(namespace, spans, q)
	}
	return page, failure
}

// A span is a range of records of which the asker may read some, or all.
type span struct {
	from, to string // empty: to the end
	all      bool
}

// spans returns the parts of a range in which the asker may read something.
func (v *view) spans(namespace, from, to string) (spans []span) {
	for _, part := range v.permit.Parts(policy.RecordRead, namespace, "") {
		s, ok := clip(span{part.Path, part.End(), false}, from, to)
		if !ok {
			continue
		}
		s.all = v.permit.MaySpan(policy.RecordRead, namespace, s.from, s.to) ||
			part.Exact && v.permit.May(policy.RecordRead, namespace, part.Path, nil)
		if policy.IsForeignDoor(v.door) {
			spans = append(spans, s)
			continue
		}
		spans = append(spans, v.withoutForeign(namespace, s)...)
	}
	return spans
}

// clip returns the part of a span that is in a range, and reports whether there is one.
func clip(s span, from, to string) (span, bool) {
	s.from = max(s.from, from)
	if to != "" && (s.to == "" || to < s.to) {
		s.to = to
	}
	return s, s.to == "" || s.from < s.to
}

// withoutForeign cuts out of a span what foreign clients keep, if nothing there may be read.
func (v *view) withoutForeign(namespace string, s span) (left []span) {
	for _, root := range policy.ForeignRoots() {
		_, touches := clip(s, root.Path, root.End())
		if !touches {
			continue
		}
		if root.Some || len(v.permit.Parts(policy.Foreign, namespace, root.Path)) > 0 {
			s.all = s.all && v.permit.MaySpan(policy.Foreign, namespace, max(s.from, root.Path), root.End())
			continue
		}
		if before, some := clip(s, s.from, root.Path); some {
			left = append(left, before)
		}
		s.from = max(s.from, root.End())
		if s.to != "" && s.from >= s.to {
			return left
		}
	}
	return append(left, s)
}

// maxRecordReads is how often the core is asked for one page.
const maxRecordReads = 16

// A recordPage is a page that is being filled.
type recordPage struct {
	core.RecordPage
	most, bytes, reads int
}

func (p *recordPage) full() bool {
	return len(p.Records) == p.most || p.bytes >= leasehold.MaxPageBytes
}

func (v *view) pageOf(namespace string, spans []span, q core.RecordQuery) (core.RecordPage, *leasehold.Error) {
	page := &recordPage{most: q.Most}
	if q.Most <= 0 || q.Most > leasehold.MaxPage {
		page.most = leasehold.MaxPage
	}
	for _, s := range spans {
		from, failure := v.fill(page, namespace, s, q)
		if failure != nil {
			return core.RecordPage{}, failure
		}
		if from != "" {
			page.More, page.Behind = true, v.behind(namespace, from)
			break
		}
	}
	return page.RecordPage, nil
}

// fill adds what may be read of a span. It returns the first path that it did not look at, because the page is full;
// empty: it looked at all.
func (v *view) fill(page *recordPage, namespace string, s span, q core.RecordQuery) (string, *leasehold.Error) {
	for from := s.from; ; {
		if page.full() || page.reads == maxRecordReads {
			return from, nil
		}
		page.reads++
		read := core.RecordQuery{From: from, To: s.to, KeysOnly: q.KeysOnly, Revision: q.Revision, Session: q.Session}
		if s.all {
			read.Most = page.most - len(page.Records)
		}
		found, failure := v.in.Records(namespace, read)
		if failure != nil {
			return "", failure
		}
		page.Revision = found.Revision
		for _, r := range found.Records {
			if page.full() {
				return from, nil
			}
			if from = r.Path + "\x00"; s.all || v.readsRecord(namespace, r.Path) {
				page.Records = append(page.Records, r)
				page.bytes += len(r.Path) + len(r.Value)
			}
		}
		if !found.More {
			return "", nil
		}
	}
}

// behind returns after what a page goes on, as the asker is told it. from is the first path that it has not looked at:
// the one after a record, or the beginning of a span, which the asker knows from its own rights.
func (v *view) behind(namespace, from string) string {
	if path, after := strings.CutSuffix(from, "\x00"); after {
		return v.seal(path, v.readsRecord(namespace, path))
	}
	return from[:len(from)-1] // it sorts before, and nothing of the asker's is in between
}

// maxCounted is how many records of others a count passes over.
const maxCounted = 10000

// count counts records that may be read. Spans that may be read whole are counted by the tree, the others one by one.
func (v *view) count(namespace string, spans []span, q core.RecordQuery) (n int, err *leasehold.Error) {
	looked := 0
	for _, s := range spans {
		if s.all {
			found, failure := v.in.Records(namespace, core.RecordQuery{From: s.from, To: s.to, Most: 1, KeysOnly: true,
				Count: true, Revision: q.Revision})
			if failure != nil {
				return 0, failure
			}
			n += found.Count
			continue
		}
		for from, more := s.from, true; more; {
			found, failure := v.in.Records(namespace, core.RecordQuery{From: from, To: s.to, KeysOnly: true,
				Revision: q.Revision})
			if failure != nil {
				return 0, failure
			}
			for _, r := range found.Records {
				if from = r.Path + "\x00"; v.readsRecord(namespace, r.Path) {
					n++
				}
			}
			if more = found.More; looked+len(found.Records) > maxCounted && more {
				return 0, &leasehold.Error{Code: leasehold.Limited, Message: "too many records here belong to others " +
					"to count your own: give a longer prefix, or leave out the count"}
			}
			looked += len(found.Records)
		}
	}
	return n, nil
}
