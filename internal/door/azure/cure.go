package azure

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/azureblob"
)

// lockKey is where the azurerm backend of Terraform and OpenTofu notes who holds a state. It
// does so in a second request, after the lease.
const lockKey = "terraformlockid"

// cure adds to a leased blob the note that belongs to the lease, if it is missing or belongs
// to another. It is missing when the answer to the lease was lost, or its holder died before
// the second request: Terraform then neither waits for the lock nor says who has it, and knows
// no id that would unlock it. With a note whose ID is the lease's id it does all three.
//
// A client that contends, and so names no lease, also reads how long the lease is held and
// may be.
func (c *call) cure(i *item) {
	if !i.lease.alive() {
		return
	}
	info := noteOf(&i.properties, i.lease.guid)
	if info == nil {
		info = i.lease.unnoted(c.at)
	} else if c.r.Header.Get("X-Ms-Lease-Id") != "" {
		return // it is the holder's own, and it gets back what it wrote
	}
	if _, err := time.Parse(time.RFC3339, info.Created); err != nil {
		// Terraform shows nothing of a note whose time it cannot read.
		info.Created = i.lease.since.UTC().Format(time.RFC3339Nano)
	}
	info.Info = strings.TrimPrefix(info.Info+"; "+i.lease.detail(c.at.Resource()), "; ")
	b, _ := json.Marshal(info)
	c.w.Header()["x-ms-meta-"+lockKey] = []string{base64.StdEncoding.EncodeToString(b)}
}

// unnoted returns what is known of a holder that noted nothing of itself beside its lease.
func (l *lease) unnoted(at azureblob.Place) *note {
	info := &note{
		Operation: cmp.Or(l.reason, "unknown"), Who: l.holder, Created: l.since.UTC().Format(time.RFC3339Nano),
		Path: at.Container + "/" + at.Blob,
	}
	if l.reason == "" {
		info.Info = "the holder noted nothing of itself beside its lease"
	}
	info.ID = l.guid
	return info
}

// detail returns what a client should know of a lease that is in its way.
func (l *lease) detail(resource string) string {
	text := fmt.Sprintf("held for %v", time.Since(l.since).Round(time.Second))
	if l.seconds != infinite {
		text += fmt.Sprintf(", ends in %v unless it is renewed", l.remaining.Round(time.Second))
	}
	if l.waiting > 0 {
		text += fmt.Sprintf(", %d waiting", l.waiting)
	}
	return text + "; an operator can end it with: leasehold break " + shellWord(resource) + " --now --yes --reason WHY"
}

// shellWord quotes a name that a shell would take apart.
func shellWord(s string) string {
	if !strings.ContainsAny(s, " \t\n\r\"'\\$`!*?[](){}<>|&;#~") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
