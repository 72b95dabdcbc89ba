package azure

import (
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// deleteBlob deletes a blob, its snapshots, or one of these.
func (c *call) deleteBlob() error {
	if c.at.Snapshot != "" {
		return c.deleteSnapshot()
	}
	snapshots := strings.ToLower(c.r.Header.Get("X-Ms-Delete-Snapshots"))
	if snapshots != "" && snapshots != "include" && snapshots != "only" {
		return badHeader("x-ms-delete-snapshots", snapshots)
	}
	guard, err := c.readGuard()
	if err != nil {
		return err
	}
	var created leasehold.Revision // of the blob that is to be deleted, and not of the next one of its name
	return c.decide(func(tried bool) (bool, error) {
		container, was, err := c.lookBoth()
		if err != nil {
			return false, err
		}
		if tried && created != 0 && was.create != created && snapshots != "only" {
			return true, c.answer(http.StatusAccepted) // an earlier try did it
		}
		created = was.create
		if err := mayWrite(&was, &guard, true); err != nil {
			return false, err
		}
		ops, also, err := c.deletion(&was, snapshots)
		if err != nil {
			return false, err
		}
		_, done, err := c.do(append(also, c.asRead(&container, &was)...), ops...)
		if err != nil || !done {
			return false, err
		}
		c.w.Header()["x-ms-delete-type-permanent"] = []string{"true"}
		return true, c.answer(http.StatusAccepted)
	})
}

// deletion returns the operations that delete a blob. A blob with snapshots is deleted only together with them.
func (c *call) deletion(was *item, snapshots string) (ops []core.Op, also []core.Compare, err error) {
	past := []core.Op{
		azureblob.DeleteAll(c.at.Part(azureblob.RootSnapshots)), azureblob.DeleteAll(c.at.Part(azureblob.RootPast)),
	}
	switch snapshots {
	case "only":
		return past, nil, nil
	case "":
		prefix := c.at.Part(azureblob.RootSnapshots)
		var page core.RecordPage
		err := c.read(func(v core.View) {
			page, _ = v.Records(c.door.config.Namespace,
				core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), Most: 1, KeysOnly: true})
		})
		if err == nil && len(page.Records) > 0 {
			err = errSnapshotsPresent
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return append(c.deleteWhole(c.at, was), past...), nil, nil
}

// deleteWhole returns the operations that delete all of a blob but its snapshots, and end its lease: the lease of a
// blob that is gone would be in the way of the next one of the same name.
func (c *call) deleteWhole(at azureblob.Place, was *item) (ops []core.Op) {
	for _, path := range []string{at.PropertiesPath(), at.BytesPath(), at.Of(azureblob.RootLists)} {
		ops = append(ops, core.Op{Do: core.Delete, Path: path})
	}
	ops = append(ops, azureblob.DeleteAll(at.Part(azureblob.RootBlocks)))
	if was.lease.alive() {
		ops = append(ops, core.Op{Do: core.ReleaseLease, ID: was.lease.id})
	}
	return ops
}

// deleteSnapshot deletes one snapshot. It has no lease of its own, and that of the blob does not protect it.
func (c *call) deleteSnapshot() error {
	guard, err := c.readGuard()
	if err != nil {
		return err
	}
	return c.decide(func(tried bool) (bool, error) {
		container, was, err := c.lookBoth()
		switch {
		case err != nil:
			return false, err
		case tried && !was.found:
			return true, c.answer(http.StatusAccepted)
		case !was.found:
			return false, errBlobNotFound
		}
		if err := guard.check(&was, true); err != nil {
			return false, err
		}
		_, done, err := c.do([]core.Compare{unchanged(c.at.ContainerPath(), container.mod)},
			core.Op{Do: core.Delete, Path: c.at.PropertiesPath()}, core.Op{Do: core.Delete, Path: c.at.BytesPath()})
		if err != nil || !done {
			return false, err
		}
		return true, c.answer(http.StatusAccepted)
	})
}
