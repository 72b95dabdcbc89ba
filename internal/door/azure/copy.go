package azure

import (
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/core"
)

// copyBlob makes a blob of another one of the account. It is done when it is answered.
func (c *call) copyBlob() error {
	source, err := c.copySource()
	if err != nil {
		return err
	}
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	conditions, err := c.readConditions("X-Ms-Source-")
	if err != nil {
		return err
	}
	conditions.asRead = false
	held, err := c.guidHeader("X-Ms-Source-Lease-Id")
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if c.r.Header.Get("X-Ms-Blob-Type") != "" {
		status = http.StatusCreated // "Put Blob From URL"
	}
	return c.write(blobWrite{status: status,
		change: func(_ *item, p *properties) ([]core.Op, []core.Compare, error) {
			from, record, err := c.readSource(source, held, &conditions)
			if err != nil {
				return nil, nil, err
			}
			given := metadata
			if len(given) == 0 {
				given = maps.Clone(from.Metadata)
			}
			renew(p, &from.properties, given)
			p.Size = from.Size
			p.Copy = &copied{ID: newGUID(), Source: c.r.Header.Get("X-Ms-Copy-Source"), At: p.Modified}
			p.Copy.Source, _, _ = strings.Cut(p.Copy.Source, "?") // what follows may be a signature
			body, err := bytesOf(&from, record)
			if err != nil {
				return nil, nil, err
			}
			return c.replaceBytes(&body), []core.Compare{unchanged(source.propertiesPath(), from.mod)}, nil
		},
		answer: func(h http.Header, p *properties) {
			h["x-ms-copy-id"], h["x-ms-copy-status"] = []string{p.Copy.ID}, []string{"success"}
		},
	})
}

func (c *call) readSource(source target, held string, conditions *conditions) (from item, record *leasehold.Record, err error) {
	var container item
	err = c.read(func(v core.View) {
		container = c.look(v, source.containerPath())
		from = c.lookBlob(v, source)
		record, _ = v.Record(c.door.config.Namespace, source.bytesPath(), 0)
	})
	switch {
	case err != nil:
		return from, nil, err
	case !container.found || !from.found:
		return from, nil, errCopySource
	}
	if source.snapshot == "" {
		err = from.lease.checkUse(held, false)
	}
	if err == nil {
		err = conditions.check(&from, true)
	}
	return from, record, err
}

// copySource reads which blob is to be copied. Who was let in for one blob alone must
// show that the other may be read too.
func (c *call) copySource() (at target, err error) {
	value := c.r.Header.Get("X-Ms-Copy-Source")
	u, err := url.Parse(value)
	if err != nil || len(value) > 4096 {
		return at, badHeader("x-ms-copy-source", value)
	}
	path := strings.TrimPrefix(u.Path, "/")
	if m := hostForm.FindStringSubmatch(strings.ToLower(u.Host)); m != nil {
		at.account = m[1]
	} else {
		at.account, path, _ = strings.Cut(path, "/")
	}
	at.container, at.blob, _ = strings.Cut(path, "/")
	query := u.Query()
	at.snapshot = query.Get("snapshot")
	switch {
	case at.account != c.at.account:
		return at, errCopyAccount.with("HeaderName", "x-ms-copy-source")
	case !azureaccount.ValidContainer(at.container) || !validBlob(at) || at.snapshot != "" && !validSnapshot(at.snapshot):
		return at, badHeader("x-ms-copy-source", value)
	}
	if !c.limited() {
		return at, nil
	}
	if err := c.checkSAS(query, at, &operation{name: "get-blob", kind: ofBlob, needs: "r"}); err != nil {
		return at, newFault(403, "CannotVerifyCopySource", "This request is not authorized to read the source of the copy.")
	}
	return at, nil
}

// abortCopy finds nothing to abort: copies are done when they are answered.
func (c *call) abortCopy() error { return errNoPendingCopy }
