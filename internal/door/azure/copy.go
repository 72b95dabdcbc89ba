package azure

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// copyBlob copies another blob of the account. The copy is complete when it is answered; clients that poll for its
// end, as Azure's copies need it, find "success" at once.
func (c *call) copyBlob() error {
	source, err := c.copySource()
	if err != nil {
		return err
	}
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	var g guard
	if g.conditions, err = c.readConditions("X-Ms-Source-"); err != nil {
		return err
	}
	g.asRead = false
	if g.guid, err = c.guidHeader("X-Ms-Source-Lease-Id"); err != nil {
		return err
	}
	status := http.StatusAccepted
	if c.r.Header.Get("X-Ms-Blob-Type") != "" {
		status = http.StatusCreated // "Put Blob From URL"
	}
	return c.write(blobWrite{status: status,
		change: func(_ *item, p *properties) ([]core.Op, []core.Compare, error) {
			from, record, err := c.readSource(source, &g)
			if err != nil {
				return nil, nil, err
			}
			given := metadata
			if len(given) == 0 {
				given = maps.Clone(from.Metadata)
			}
			p.Renew(&from.Properties, given)
			p.Size = from.Size
			p.Copy = &azureblob.Copied{ID: azureblob.NewGUID(), At: p.Modified}
			// What follows may be a signature.
			p.Copy.Source, _, _ = strings.Cut(c.r.Header.Get("X-Ms-Copy-Source"), "?")
			body, err := bytesOf(&from, record)
			if err != nil {
				return nil, nil, err
			}
			return c.at.Replace(body.put("")), []core.Compare{unchanged(source.PropertiesPath(), from.mod)}, nil
		},
		answer: func(h http.Header, p *properties) {
			h["x-ms-copy-id"], h["x-ms-copy-status"] = []string{p.Copy.ID}, []string{"success"}
		},
	})
}

// readSource reads the blob to copy, and its bytes, under the lease and the conditions that the request has for it.
func (c *call) readSource(at azureblob.Place, g *guard) (from item, record *leasehold.Record, err error) {
	var container item
	err = c.read(func(v core.View) {
		container = c.look(v, at.ContainerPath())
		from = c.lookBlob(v, at)
		record, _ = v.Record(c.door.config.Namespace, at.BytesPath(), 0)
	})
	switch {
	case err != nil:
		return from, nil, err
	case !container.found || !from.found:
		return from, nil, errCopySource
	}
	if at.Snapshot == "" {
		err = from.lease.checkUse(g.guid, false)
	}
	return from, record, cmp.Or(err, g.check(&from, true))
}

// copySource reads which blob to copy. A request that was let in by a signature for one blob alone has to show
// another signature for the source.
func (c *call) copySource() (at azureblob.Place, err error) {
	value := c.r.Header.Get("X-Ms-Copy-Source")
	u, err := url.Parse(value)
	if err != nil || len(value) > 4096 {
		return at, badHeader("x-ms-copy-source", value)
	}
	path := strings.TrimPrefix(u.Path, "/")
	if m := hostForm.FindStringSubmatch(strings.ToLower(u.Host)); m != nil {
		at.Account = m[1]
	} else {
		at.Account, path, _ = strings.Cut(path, "/")
	}
	at.Container, at.Blob, _ = strings.Cut(path, "/")
	query := u.Query()
	at.Snapshot = query.Get("snapshot")
	switch {
	case at.Account != c.at.Account:
		return at, errCopyAccount.with("HeaderName", "x-ms-copy-source")
	case !azureaccount.ValidContainer(at.Container), !at.ValidBlob(), at.Snapshot != "" && !validSnapshot(at.Snapshot):
		return at, badHeader("x-ms-copy-source", value)
	}
	if !c.limited() {
		return at, nil
	}
	if err := c.checkSAS(query, at, &operation{name: "get-blob", kind: ofBlob, needs: "r"}); err != nil {
		return at, newFault(403, "CannotVerifyCopySource",
			"This request is not authorized to read the source of the copy.")
	}
	return at, nil
}

// abortCopy finds nothing to abort: a copy is complete when it is answered.
func (c *call) abortCopy() error { return errNoPendingCopy }
