package terraform

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// States of the azurerm backend are blobs. The Azure door serves them to Terraform; here the command line
// reads and writes them. A write is what the backend's own is: bytes and properties change together, under
// the lease. Serial and lineage are judged as those of other states are, which the backend leaves to Terraform.

// A blobItems is a container and a blob in it, as they were read.
type blobItems struct{ container, blob azureblob.Item }

func (c *call) lookBlob(v core.View) blobItems {
	return blobItems{
		container: azureblob.Look(v, c.namespace, c.blob.ContainerPath()),
		blob:      azureblob.Look(v, c.namespace, c.blob.PropertiesPath()),
	}
}

// absent reports whether there is no state yet. The azurerm backend makes an empty blob before it writes one.
func (p *present) absent(azure bool) bool {
	return p.record == nil || azure && content{p.record.Value, p.record.Large}.size() == 0
}

// mayWriteBlob returns why a state of the azurerm backend cannot be written, locked or unlocked by a request.
func (c *call) mayWriteBlob(o *operation) error {
	at, _ := strings.CutPrefix(c.state, tfstate.AzureMark)
	c.blob.Account, at, _ = strings.Cut(at, "/")
	c.blob.Container, c.blob.Blob, _ = strings.Cut(at, "/")
	switch {
	case !azureaccount.ValidName(c.blob.Account) || !azureaccount.ValidContainer(c.blob.Container) ||
		!c.blob.ValidBlob():
		return door.Invalid("%s cannot be a blob: write azurerm:ACCOUNT/CONTAINER/KEY, with names that Azure allows",
			door.Brief(c.state))
	case o.name == "delete-state":
		return refused("a state of the azurerm backend is deleted by a client of Azure, or with its workspace: use " +
			"terraform workspace delete")
	case c.query.Has("allow-lineage"):
		return refused("%s needs no permit: Terraform writes it through the Azure port, which checks no lineage; to "+
			"replace it by hand, run leasehold state push %s FILE --force --reason WHY", c.state, c.state)
	case o.name == "write-state" && c.query.Get("ID") == "":
		return door.Invalidly(http.StatusBadRequest,
			"a state of the azurerm backend is written under its lock alone: lock it, and name the ID of the lock")
	case o.name == "unlock-state":
		return nil
	}
	return c.needsContainer()
}

// needsContainer refuses a state in a container that does not exist.
func (c *call) needsContainer() error {
	var items blobItems
	if err := c.look(func(v core.View) { items = c.lookBlob(v) }); err != nil || items.container.Found {
		return err
	}
	return &leasehold.Error{Code: leasehold.NotFound, Message: fmt.Sprintf(
		"account %s has no container %s: make it with leasehold azure container create %s %s",
		c.blob.Account, c.blob.Container, c.blob.Account, c.blob.Container)}
}

// putBlob writes, if all is still as it was read. changed reports that it is not.
func (c *call) putBlob(p present, sent content, head tfstate.Head) (changed bool, err error) {
	if !p.blob.container.Found {
		return false, c.needsContainer()
	}
	if err := c.sayForced(p, head); err != nil {
		return false, err
	}
	next, mod := p.blob.blob.Properties, leasehold.Revision(0)
	if p.record != nil {
		mod = p.record.Mod
	}
	next.Touch()
	// As the backend does: metadata stays, and what else there was is replaced.
	next.Renew(&azureblob.Properties{
		Type: "application/json", MD5: c.sum(),
	}, next.Metadata)
	next.Size = sent.size()
	next.Remember(p.status.Last)
	answer, err := c.do(&core.Txn{
		Namespace: c.namespace,
		If: append(c.blob.AsRead(p.blob.container.Mod, p.blob.blob.Mod, p.holder.ID),
			azureblob.Unchanged(c.blob.BytesPath(), mod)),
		Then: append(c.blob.Replace(core.Op{Value: sent.value, Large: sent.large, Keep: c.door.config.Keep}),
			c.blob.Put(&next)),
	})
	if err != nil {
		return false, err
	}
	return !answer.Txn.Succeeded, nil
}

// sum is the MD5 of the state that was received, as a blob has it. A blob whose bytes another program wrote has
// that of its former bytes, or none, and Azure's clients would refuse to read it.
func (c *call) sum() string { return base64.StdEncoding.EncodeToString(c.md5) }

// sayForced notes with the lease, and so in the journal, why a write is made that would have been refused: a
// transaction has no reason of its own. A second try finds it noted.
func (c *call) sayForced(p present, head tfstate.Head) error {
	_, reason := c.whyForced(p, head)
	if reason == "" || strings.HasPrefix(p.holder.Reason, "forced, ") {
		return nil
	}
	_, err := c.do(&core.Change{Namespace: c.namespace, ID: p.holder.ID, About: &core.About{
		Holder: p.holder.Holder, Reason: reason, Labels: p.holder.Labels,
	}})
	if errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound) {
		return nil // the write finds out that the lock is gone
	}
	return err
}
