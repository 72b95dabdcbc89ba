package azure

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// lockKey is where the azurerm backend of Terraform and OpenTofu notes who holds a state. It
// does so in a second request, after the lease.
const lockKey = "terraformlockid"

// lockInfo is what the backend notes there, in JSON and base64.
type lockInfo struct {
	ID        string
	Operation string
	Info      string
	Who       string
	Version   string
	Created   time.Time
	Path      string
}

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
	info, ok := decodeLock(i.Metadata[lockKey])
	if id, valid := parseGUID(info.ID); !ok || !valid || id != i.lease.guid {
		info = lockInfo{
			ID: i.lease.guid, Operation: "unknown", Who: i.lease.holder, Created: i.lease.since.UTC(),
			Path: c.at.container + "/" + c.at.blob,
			Info: "the holder noted nothing of itself beside its lease",
		}
	} else if c.r.Header.Get("X-Ms-Lease-Id") != "" {
		return // it is the holder's own, and it gets back what it wrote
	}
	info.Info = strings.TrimPrefix(info.Info+"; "+i.lease.told(c.at.resource()), "; ")
	b, _ := json.Marshal(info)
	c.w.Header()["x-ms-meta-"+lockKey] = []string{base64.StdEncoding.EncodeToString(b)}
}

func decodeLock(value string) (info lockInfo, ok bool) {
	b, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(b) == 0 {
		return info, false
	}
	return info, json.Unmarshal(b, &info) == nil
}

// told returns what a client should know of a lease that is in its way.
func (l *lease) told(resource string) string {
	text := fmt.Sprintf("held for %v", time.Since(l.since).Round(time.Second))
	if l.seconds != infinite {
		text += fmt.Sprintf(", ends in %v unless it is renewed", l.remaining.Round(time.Second))
	}
	if l.waiting > 0 {
		text += fmt.Sprintf(", %d waiting", l.waiting)
	}
	return text + "; an operator can end it with: leasehold break " + resource + " --reason WHY"
}
