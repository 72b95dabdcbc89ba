package azure

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

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

// readBlob reads a blob and its bytes under the guard of the request.
func (c *call) readBlob() (i item, record *leasehold.Record, err error) {
	guard, err := c.readGuard()
	if err != nil {
		return i, nil, err
	}
	var container item
	err = c.read(func(v core.View) {
		container, i = c.lookContainer(v), c.lookBlob(v, c.at)
		record, _ = v.Record(c.door.config.Namespace, c.at.BytesPath(), 0)
	})
	switch {
	case err != nil:
		return i, nil, err
	case !container.found:
		return i, nil, errContainerNotFound
	case !i.found:
		return i, nil, errBlobNotFound
	}
	if c.at.Snapshot == "" {
		err = i.lease.checkUse(guard.guid, false)
	}
	if err == nil {
		err = guard.check(&i, true)
	}
	return i, record, err
}

// bytesOf returns the content of a blob. Its record is missing only if another door deleted it.
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

// sendPart sends the bytes of a range, or all of them, with the sums that the SDK checks.
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
		summed = strings.EqualFold(c.r.Header.Get("X-Ms-Range-Get-Content-Md5"), "true")
		if summed && part.length > maxSummed {
			return badHeader("x-ms-range-get-content-md5", "true")
		}
	}
	if h.Get("Content-Disposition") == "" && c.query.Get("rscd") != "" {
		h.Set("Content-Disposition", c.query.Get("rscd"))
	}
	h.Set("Content-Length", strconv.FormatInt(part.length, 10))
	ctx, ended := c.door.backend.Proven(c.ctx, c.proof)
	defer ended()
	r, err := c.openContent(ctx, body, part.from, part.length)
	if err != nil {
		return err
	}
	defer r.Close()
	if summed {
		return c.sendSummed(r, status)
	}
	c.w.WriteHeader(status)
	if n, err := io.Copy(pace.Writer(c.w), r); err != nil || n != part.length {
		return door.ErrCut // its length is announced already
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
