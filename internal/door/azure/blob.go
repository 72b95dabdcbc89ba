package azure

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
	"github.com/leasehold/leasehold/internal/core"
)

// A blobWrite is a change of a blob: what is common to all of them is in do, and what it
// makes of the blob in change.
type blobWrite struct {
	exists bool // the blob must be there
	status int
	// change makes of what was read what is to be, and returns what else is to be written.
	// also are further comparisons.
	change func(was *item, p *properties) (ops []core.Op, also []core.Compare, err error)
	answer func(h http.Header, p *properties)
}

// write reads a blob, checks lease and conditions, in this order, and changes it if
// nobody was faster.
func (c *call) write(w blobWrite) error {
	if c.at.snapshot != "" {
		return errInvalidQuery.saying("A snapshot can not be changed.").with("QueryParameterName", "snapshot").with("QueryParameterValue", c.at.snapshot)
	}
	guid, err := c.leaseHeader()
	if err != nil {
		return err
	}
	conditions, err := c.readConditions("")
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
		if err := firstError(c.mayReplace(&was), mayWrite(&was, guid, &conditions, w.exists)); err != nil {
			return false, err
		}
		p := was.properties
		p.touch()
		p.ETag = made
		if !was.lease.alive() {
			p.Settled = max(p.Settled, was.lease.token)
		}
		ops, also, err := w.change(&was, &p)
		if err != nil {
			return false, err
		}
		compares := append(also, c.asRead(&container, &was)...)
		_, done, err := c.do(compares, append(ops, core.Op{Do: core.Put, Path: c.at.propertiesPath(), Value: p.encode()})...)
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
	return []core.Compare{unchanged(c.at.containerPath(), container.mod), unchanged(c.at.propertiesPath(), blob.mod), blob.lease.asSeen(c.at.resource())}
}

// mayWrite tells why a blob may not be written. A blob that is new may be written under
// any lease id, as in Azure, unless somebody holds its name.
func mayWrite(was *item, guid string, conditions *conditions, exists bool) error {
	if !was.found && exists {
		return errBlobNotFound
	}
	if was.found || was.lease.alive() {
		if err := was.lease.checkUse(guid, true); err != nil {
			return err
		}
	}
	return conditions.check(was, exists)
}

// mayReplace refuses to write over a blob to who was only let in to make one.
func (c *call) mayReplace(was *item) error {
	if was.found && c.limited() && !permitted(c.query.Get("sp"), "w") {
		return errPermission
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// early looks whether a write would be refused, before its body is read.
func (c *call) early(exists bool) error {
	guid, err := c.leaseHeader()
	if err != nil {
		return err
	}
	conditions, err := c.readConditions("")
	if err != nil {
		return err
	}
	_, was, err := c.lookBoth()
	if err != nil {
		return err
	}
	return firstError(c.mayReplace(&was), mayWrite(&was, guid, &conditions, exists))
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

// putBlob makes a blob of the body, or of another blob.
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
			renew(p, &shown, metadata)
			if p.Size = body.size; p.MD5 == "" {
				p.MD5 = sum
			}
			return c.replaceBytes(&body), nil, nil
		},
		answer: func(h http.Header, _ *properties) { h["Content-MD5"] = []string{sum} },
	})
}

// renew makes properties those of new bytes.
func renew(p, shown *properties, metadata map[string]string) {
	if p.Created == 0 {
		p.Created = p.Modified
	}
	p.Type, p.Encoding, p.Language, p.Disposition, p.Cache, p.MD5 = shown.Type, shown.Encoding, shown.Language, shown.Disposition, shown.Cache, shown.MD5
	p.Metadata, p.Copy, p.Blocks = metadata, nil, 0
}

// replaceBytes puts the bytes of a blob as a whole, and drops the blocks that it was, or
// was to be, made of.
func (c *call) replaceBytes(body *content) []core.Op {
	return []core.Op{body.put(c.at.bytesPath()), {Do: core.Delete, Path: c.at.of(rootLists)}, deleteAll(c.at.part(rootBlocks))}
}

func deleteAll(prefix string) core.Op {
	return core.Op{Do: core.Delete, Path: prefix, Range: true, To: core.PrefixEnd(prefix)}
}

// getBlob answers GET and HEAD.
func (c *call) getBlob() error {
	i, record, err := c.readBlob()
	if err != nil {
		return err
	}
	h := c.w.Header()
	body, err := bytesOf(&i, record)
	if err != nil && c.r.Method != http.MethodHead {
		return err
	}
	asked := c.r.Header.Get("X-Ms-Range")
	if asked == "" {
		asked = c.r.Header.Get("Range")
	}
	part, err := parseRange(asked, body.size)
	if err != nil {
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", body.size))
		return err
	}
	i.head(h)
	i.lease.head(h)
	c.cure(&i)
	h.Set("Accept-Ranges", "bytes")
	if c.r.Method == http.MethodHead {
		return c.headOf(&i)
	}
	return c.sendPart(&i, body, part)
}

// readBlob reads a blob and its bytes, if the request may.
func (c *call) readBlob() (i item, record *leasehold.Record, err error) {
	guid, err := c.leaseHeader()
	if err != nil {
		return i, nil, err
	}
	conditions, err := c.readConditions("")
	if err != nil {
		return i, nil, err
	}
	var container item
	err = c.read(func(v core.View) {
		container, i = c.lookContainer(v), c.lookBlob(v, c.at)
		record, _ = v.Record(c.door.config.Namespace, c.at.bytesPath(), 0)
	})
	switch {
	case err != nil:
		return i, nil, err
	case !container.found:
		return i, nil, errContainerNotFound
	case !i.found:
		return i, nil, errBlobNotFound
	}
	if c.at.snapshot == "" {
		err = i.lease.checkUse(guid, false)
	}
	if err == nil {
		err = conditions.check(&i, true)
	}
	return i, record, err
}

// bytesOf is the content of a blob. Its record can only be missing if it was deleted by
// another door.
func bytesOf(i *item, record *leasehold.Record) (content, error) {
	switch {
	case record != nil:
		return contentOf(record), nil
	case i.Size != 0:
		return content{size: i.Size}, errBytesGone
	}
	return content{}, nil
}

func (c *call) headOf(i *item) error {
	h := c.w.Header()
	if i.MD5 != "" {
		h["Content-MD5"] = []string{i.MD5}
	}
	h.Set("Content-Length", strconv.FormatInt(i.Size, 10))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// maxSummed is the longest part whose MD5 can be asked for, as in Azure.
const maxSummed = 4 << 20

func (c *call) sendPart(i *item, body content, part span) error {
	h := c.w.Header()
	status := http.StatusOK
	summed := false
	switch {
	case part.whole && i.MD5 != "":
		h["Content-MD5"] = []string{i.MD5}
	case !part.whole:
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.from, part.from+part.length-1, body.size))
		if i.MD5 != "" {
			h["x-ms-blob-content-md5"] = []string{i.MD5}
		}
		if summed = strings.EqualFold(c.r.Header.Get("X-Ms-Range-Get-Content-Md5"), "true"); summed && part.length > maxSummed {
			return badHeader("x-ms-range-get-content-md5", "true")
		}
	}
	if h.Get("Content-Disposition") == "" && c.query.Get("rscd") != "" {
		h.Set("Content-Disposition", c.query.Get("rscd"))
	}
	h.Set("Content-Length", strconv.FormatInt(part.length, 10))
	r, err := c.openContent(body, part.from, part.length)
	if err != nil {
		return err
	}
	defer r.Close()
	if summed {
		return c.sendSummed(r, status)
	}
	c.w.WriteHeader(status)
	if n, err := io.Copy(&patient{c}, r); err != nil || n != part.length {
		return errCut // its length is announced already
	}
	return nil
}

func (c *call) sendSummed(r io.Reader, status int) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.w.Header()["Content-MD5"] = []string{base64.StdEncoding.EncodeToString(md5Of(b))}
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b)
	return nil
}

// A patient writer waits for as long as something of the answer is taken.
type patient struct{ *call }

func (p *patient) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.w).SetWriteDeadline(time.Now().Add(pieceTime))
	n, err := p.w.Write(b)
	_ = http.NewResponseController(p.w).SetWriteDeadline(time.Time{})
	return n, err
}

func (c *call) getBlobMetadata() error {
	i, _, err := c.readBlob()
	if err != nil {
		return err
	}
	h := c.w.Header()
	i.tags(h)
	writeMetadata(h, i.Metadata)
	c.cure(&i)
	return c.answer(http.StatusOK)
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
			p.Type, p.Encoding, p.Language, p.Disposition, p.Cache, p.MD5 = shown.Type, shown.Encoding, shown.Language, shown.Disposition, shown.Cache, shown.MD5
			return nil, nil, nil
		},
	})
}

// deleteBlob deletes a blob, its snapshots, or one of these.
func (c *call) deleteBlob() error {
	if c.at.snapshot != "" {
		return c.deleteSnapshot()
	}
	snapshots := strings.ToLower(c.r.Header.Get("X-Ms-Delete-Snapshots"))
	if snapshots != "" && snapshots != "include" && snapshots != "only" {
		return badHeader("x-ms-delete-snapshots", snapshots)
	}
	guid, err := c.leaseHeader()
	if err != nil {
		return err
	}
	conditions, err := c.readConditions("")
	if err != nil {
		return err
	}
	return c.decide(func(tried bool) (bool, error) {
		container, was, err := c.lookBoth()
		if err != nil {
			return false, err
		}
		if tried && !was.found && snapshots != "only" {
			return true, c.answer(http.StatusAccepted) // an earlier try did it
		}
		if err := mayWrite(&was, guid, &conditions, true); err != nil {
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

// deletion is what deletes a blob. One that has snapshots is only deleted with them.
func (c *call) deletion(was *item, snapshots string) (ops []core.Op, also []core.Compare, err error) {
	past := []core.Op{deleteAll(c.at.part(rootSnapshots)), deleteAll(c.at.part(rootPast))}
	switch snapshots {
	case "only":
		return past, nil, nil
	case "":
		prefix := c.at.part(rootSnapshots)
		var page core.RecordPage
		err := c.read(func(v core.View) {
			page, _ = v.Records(c.door.config.Namespace, core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), Most: 1, KeysOnly: true})
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

// deleteWhole deletes all that belongs to a blob but its snapshots, and ends its lease.
func (c *call) deleteWhole(at target, was *item) (ops []core.Op) {
	for _, path := range []string{at.propertiesPath(), at.bytesPath(), at.of(rootLists)} {
		ops = append(ops, core.Op{Do: core.Delete, Path: path})
	}
	ops = append(ops, deleteAll(at.part(rootBlocks)))
	if was.lease.alive() {
		ops = append(ops, core.Op{Do: core.ReleaseLease, ID: was.lease.id})
	}
	return ops
}

func (c *call) deleteSnapshot() error {
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
		_, done, err := c.do([]core.Compare{unchanged(c.at.containerPath(), container.mod)},
			core.Op{Do: core.Delete, Path: c.at.propertiesPath()}, core.Op{Do: core.Delete, Path: c.at.bytesPath()})
		if err != nil || !done {
			return false, err
		}
		return true, c.answer(http.StatusAccepted)
	})
}

// snapshotBlob keeps a blob as it is. It is a read as far as leases go.
func (c *call) snapshotBlob() error {
	if c.at.snapshot != "" {
		return badQuery("snapshot", c.at.snapshot)
	}
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	return c.decide(func(bool) (bool, error) {
		i, record, err := c.readBlob()
		if err != nil {
			return false, err
		}
		taken := c.at
		taken.snapshot = snapshotTime(time.Now().UnixNano())
		p := i.properties
		p.Settled, p.Broken = 0, 0
		if len(metadata) > 0 {
			p.Metadata = metadata
			p.touch()
		}
		body, err := bytesOf(&i, record)
		if err != nil {
			return false, err
		}
		// The blob itself is written as it is, so that who deletes it because it has no
		// snapshots looks again.
		_, done, err := c.do([]core.Compare{unchanged(c.at.propertiesPath(), i.mod), unchanged(taken.propertiesPath(), 0)},
			core.Op{Do: core.Put, Path: taken.propertiesPath(), Value: p.encode()}, body.put(taken.bytesPath()),
			core.Op{Do: core.Put, Path: c.at.propertiesPath(), Value: i.encode()})
		if err != nil || !done {
			return false, err
		}
		h := c.w.Header()
		p.tags(h)
		h["x-ms-snapshot"] = []string{taken.snapshot}
		h["x-ms-request-server-encrypted"] = []string{"false"}
		return true, c.answer(http.StatusCreated)
	})
}

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
