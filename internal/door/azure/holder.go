package azure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A note is what the azurerm backend writes about its lock into the metadata of the blob, in JSON and base64.
type note tfstate.LockInfo

// noteOf returns the note that belongs to a lease; nil if there is none, or it is that of an earlier lease.
func noteOf(p *properties, guid string) *note {
	n, ok := decodeNote(p.Metadata[lockKey])
	if id, valid := azureblob.ParseGUID(n.ID); !ok || !valid || id != guid {
		return nil
	}
	return &n
}

func decodeNote(value string) (n note, ok bool) {
	b, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(b) == 0 {
		return n, false
	}
	return n, json.Unmarshal(b, &n) == nil
}

// The labels that a lease gets from the note.
const (
	labelClient  = "azure/client" // who took the lease, as the door knows it
	labelVersion = "terraform/version"
)

// about returns what the note says of the holder, as other doors show it. was is what the lease was called before,
// with its labels.
func (n *note) about(was string, labels leasehold.Labels) core.About {
	info := (*tfstate.LockInfo)(n)
	set := slices.DeleteFunc(slices.Clone(labels), func(l leasehold.Label) bool { return l.Key == labelVersion })
	if !slices.ContainsFunc(set, func(l leasehold.Label) bool { return l.Key == labelClient }) {
		set = append(set, leasehold.Label{Key: labelClient, Value: was})
	}
	if n.Version != "" {
		set = append(set, leasehold.Label{Key: labelVersion, Value: tfstate.Shown(n.Version, 64)})
	}
	slices.SortFunc(set, func(a, b leasehold.Label) int { return strings.Compare(a.Key, b.Key) })
	about := core.About{Holder: info.Holder(), Reason: info.Reason(), Labels: set}
	if n.Who == "" {
		about.Holder = was
	}
	return about
}

// introduce tells the core who holds a blob, if a write of the holder has a note of that. The backend takes the
// lease first and notes who it is in a second request; until then the holder is the account and its address. The
// token stays, since the holder does. It happens before the write, so that a failure in between makes the client send
// the request again.
func (c *call) introduce(l *lease, p *properties) error {
	told := noteOf(p, l.guid)
	if told == nil || !l.alive() {
		return nil
	}
	about := told.about(l.holder, l.labels)
	if about.Holder == l.holder && about.Reason == l.reason && slices.Equal(about.Labels, l.labels) {
		return nil
	}
	_, err := c.engine.Do(c.ctx, &core.Change{Namespace: c.door.config.Namespace, ID: l.id, About: &about})
	if ended(err) || errors.Is(err, leasehold.ErrInvalid) {
		return nil // the write finds out that the lease is over; and what cannot be shown is left out
	}
	return err
}

// keepVersions lets the bytes of a state keep their former versions, as those of the http backend do. A blob is a
// state if a lock of Terraform is noted on it.
func (c *call) keepVersions(l *lease, p *properties, ops []core.Op) {
	if !l.alive() || noteOf(p, l.guid) == nil {
		return
	}
	for i := range ops {
		if ops[i].Do == core.Put && ops[i].Path == c.at.BytesPath() {
			ops[i].Keep = tfstate.DefaultKeep
		}
	}
}
