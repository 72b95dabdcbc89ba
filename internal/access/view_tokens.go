package access

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

const (
	// Soon is when the end of a token is worth a warning.
	Soon = 7 * 24 * time.Hour
	// maxEnding is how many tokens that end soon are shown as alarms: those that end first.
	maxEnding = 20
)

// endingTokens are the alarms of tokens that end soon, for admins: the first of every namespace, as that of a
// quarantine is. They are no part of the state: when a token ends is judged by a server's clock.
func (v *view) endingTokens(namespace string, q core.AlarmQuery) (list []leasehold.Alarm) {
	if q.Before != 0 || q.Kind != 0 && q.Kind != leasehold.TokenEnding || !v.permit.MayCluster(policy.Admin) {
		return nil
	}
	for _, t := range Ending(v.in.Policy(), time.Now()) {
		end := time.Unix(0, t.ExpiresWall).UTC()
		list = append(list, leasehold.Alarm{
			Namespace: namespace, Kind: leasehold.TokenEnding, Holder: t.Principal,
			Since: end.Add(-Soon), Last: end.Add(-Soon), Count: 1,
			Text: fmt.Sprintf("the token %s of %s ends at %s: make a new one, then revoke this one, by "+
				"leasehold access token revoke %s", t.ID, t.Principal, end.Format(time.DateTime+" MST"), t.ID),
		})
	}
	room := q.Most
	if q.Kind == 0 {
		room-- // for the others: their order says where the next page goes on
	}
	return list[:min(len(list), maxEnding, room)]
}

// Ending are the tokens that end soon, the next one first.
func Ending(p *policy.Policy, now time.Time) (list []*policy.Token) {
	for _, t := range p.Items().Tokens {
		if end := time.Unix(0, t.ExpiresWall); t.ExpiresWall != 0 && end.After(now) && end.Before(now.Add(Soon)) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *policy.Token) int {
		return cmp.Or(cmp.Compare(a.ExpiresWall, b.ExpiresWall), cmp.Compare(a.ID, b.ID))
	})
	return list
}
