package azure

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// A blobWrite is a change of a blob. What all of them have in common is in write.
type blobWrite struct {
	exists bool // the blob must be there
	status int
	// change sets the properties that the blob is to have, and returns what else is to be written, and further
	// comparisons.
	change func(was *item, p *properties) (ops []core.Op, also []core.Compare, err error)
	answer func(h http.Header, p *properties)
}

// write reads a blob, checks lease and conditions in this order, as Azure does, and changes the blob if nothing has
// changed it meanwhile. A request whose first attempt may have succeeded is recognized by its ETag, which is chosen
// once.
func (c *call) write(w blobWrite) error {
	if c.at.Snapshot != "" {
		return badQuery("snapshot", c.at.Snapshot).saying("A snapshot cannot be changed.")
	}
	guard, err := c.readGuard()
	if err != nil {
		return err
	}
	made := azureaccount.NewETag() // one for all tries, so that what an earlier one wrote is known
	return c.decide(func(tried bool) (bool, error) {
		container, was, err := c.lookBoth()
		if err != nil {
			return false, err
		}
		if tried && was.found && was.ETag == made {
			return true, c.wrote(w, &was.properties)
		}
		if err := door.First(c.mayReplace(&was), mayWrite(&was, &guard, w.exists)); err != nil {
			return false, err
		}
		p := was.properties
		p.Touch()
		p.ETag = made
		// In Azure a write makes the blob available again: an ended lease can no longer be renewed.
		if !was.lease.alive() {
			p.Settled = max(p.Settled, was.lease.token)
		}
		p.Remember(was.lease.ending)
		ops, also, err := w.change(&was, &p)
		if err != nil {
			return false, err
		}
		if err := c.introduce(&was.lease, &p); err != nil {
			return false, err
		}
		c.keepVersions(&was.lease, &p, ops)
		compares := append(also, c.asRead(&container, &was)...)
		_, done, err := c.do(compares,
			append(ops, c.at.Put(&p.Properties))...)
		if err != nil || !done {
			return false, err
		}
		return true, c.wrote(w, &p)
	})
}

// lookBoth reads a container, which must be there, and a blob in it.
func (c *call) lookBoth() (container, blob item, err error) {
	err = c.read(func(v core.View) { container, blob = c.lookContainer(v), c.lookBlob(v, c.at) })
	if err == nil && !container.found {
		err = errContainerNotFound
	}
	return container, blob, err
}

// asRead compares that container, blob and lease are still as they were read.
func (c *call) asRead(container, blob *item) []core.Compare {
	return c.at.AsRead(container.mod, blob.mod, blob.lease.id)
}

// mayWrite returns why a blob may not be written. A new blob may be written under any lease id, as in Azure, unless
// somebody holds its name.
func mayWrite(was *item, g *guard, exists bool) error {
	if !was.found && exists {
		return errBlobNotFound
	}
	if was.found || was.lease.alive() {
		if err := was.lease.checkUse(g.guid, true); err != nil {
			return err
		}
	}
	return g.check(was, exists)
}

// mayReplace returns why an existing blob may not be replaced: a signature may allow only to create new ones.
func (c *call) mayReplace(was *item) error {
	if was.found && c.limited() && !permitted(c.query.Get("sp"), "w") {
		return errPermission
	}
	return nil
}

// early checks whether a write would be refused, before its body is read: otherwise a large body would be sent in
// full only to be thrown away.
func (c *call) early(exists bool) error {
	guard, err := c.readGuard()
	if err != nil {
		return err
	}
	_, was, err := c.lookBoth()
	if err != nil {
		return err
	}
	return door.First(c.mayReplace(&was), mayWrite(&was, &guard, exists))
}

func (c *call) wrote(w blobWrite, p *properties) error {
	h := c.w.Header()
	p.tags(h)
	h["x-ms-request-server-encrypted"] = []string{"false"}
	if w.answer != nil {
		w.answer(h, p)
	}
	return c.answer(w.status)
}

// putBlob writes a blob: from the body, or as a copy of another blob.
func (c *call) putBlob() error {
	kind := c.r.Header.Get("X-Ms-Blob-Type")
	switch {
	case c.r.Header.Get("X-Ms-Copy-Source") != "":
		return c.copyBlob()
	case kind == "":
		return missingHeader("x-ms-blob-type")
	case kind == "PageBlob" || kind == "AppendBlob":
		return errBlobType.with("HeaderName", "x-ms-blob-type").with("HeaderValue", kind)
	case kind != "BlockBlob":
		return badHeader("x-ms-blob-type", kind)
	}
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	var shown properties
	if err := c.readContentHeaders(&shown, true); err != nil {
		return err
	}
	if err := c.early(false); err != nil {
		return err
	}
	body, err := c.readContent()
	if err != nil {
		return err
	}
	sum := base64.StdEncoding.EncodeToString(body.md5)
	return c.write(blobWrite{status: http.StatusCreated,
		change: func(was *item, p *properties) ([]core.Op, []core.Compare, error) {
			p.Renew(&shown.Properties, metadata)
			if p.Size = body.size; p.MD5 == "" {
				p.MD5 = sum
			}
			return c.at.Replace(body.put("")), nil, nil
		},
		answer: func(h http.Header, _ *properties) { h["Content-MD5"] = []string{sum} },
	})
}

func (c *call) setBlobMetadata() error {
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	return c.write(blobWrite{exists: true, status: http.StatusOK,
		change: func(_ *item, p *properties) ([]core.Op, []core.Compare, error) {
			p.Metadata = metadata
			return nil, nil, nil
		},
	})
}

func (c *call) setBlobProperties() error {
	var shown properties
	if err := c.readContentHeaders(&shown, false); err != nil {
		return err
	}
	for _, name := range []string{"X-Ms-Blob-Content-Length", "X-Ms-Sequence-Number-Action"} {
		if value := c.r.Header.Get(name); value != "" {
			return errUnsupportedHeader.with("HeaderName", strings.ToLower(name)).with("HeaderValue", value)
		}
	}
	return c.write(blobWrite{exists: true, status: http.StatusOK,
		change: func(_ *item, p *properties) ([]core.Op, []core.Compare, error) {
			p.Show(&shown.Properties)
			return nil, nil, nil
		},
	})
}
