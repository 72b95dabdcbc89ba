package access

import (
	"context"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

// A journal is the journal as the asker of each search may see it: with the verb audit, by path. What is about no path
// is for those who have it for the whole namespace.
type journal struct {
	guard *Guard
	book  audit.Book
}

// Find returns one page of the lines that the asker may see.
func (j journal) Find(ctx context.Context, q audit.Query) (audit.Page, error) {
	p := j.guard.feed.Policy()
	if p != nil {
		// The journal is this server's own, and nobody confirms that the policy is the newest: the state is asked.
		if err := j.guard.Ready(ctx); err != nil {
			return audit.Page{}, err
		}
		p = j.guard.feed.Policy()
	}
	permit, err := permitOf(ctx, p)
	switch {
	case err != nil:
		return audit.Page{}, err
	case permit == nil || permit.MayAll(policy.Audit, q.Namespace):
		return j.book.Find(ctx, q)
	case q.Resource != "" && !permit.May(policy.Audit, q.Namespace, q.Resource, nil):
		return audit.Page{}, deny(permit, policy.Audit, q.Namespace, q.Resource)
	case len(permit.Parts(policy.Audit, q.Namespace, q.Prefix)) == 0:
		return audit.Page{}, deny(permit, policy.Audit, q.Namespace, q.Prefix)
	}
	q.Shows = func(l *audit.Line) bool {
		if l.Resource == "" || !permit.May(policy.Audit, l.Namespace, l.Resource, nil) {
			return false
		}
		// Why something was refused may name what else was in the way: the others of a deadlock, or of one request.
		if l.Outcome == leasehold.Refused.String() {
			l.Reason = ""
		}
		return true
	}
	return j.book.Find(ctx, q)
}

// Refused notes a refusal by a door.
func (j journal) Refused(r audit.Refusal) { j.book.Refused(r) }
