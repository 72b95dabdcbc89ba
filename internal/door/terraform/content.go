package terraform

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A content is the bytes of a state: here, or beside the log.
type content struct {
	value string
	large *leasehold.Large
}

func (c content) same(other content) bool {
	if c.large == nil || other.large == nil {
		return c.large == nil && other.large == nil && c.value == other.value
	}
	return *c.large == *other.large
}

func (c content) size() int64 {
	if c.large != nil {
		return c.large.Size
	}
	return int64(len(c.value))
}

// bytes opens a content.
func (d *Door) bytes(ctx context.Context, of content) (io.ReadCloser, error) {
	if of.large == nil {
		return io.NopCloser(strings.NewReader(of.value)), nil
	}
	if d.backend.Values() == nil {
		return nil, engine.Unavailable("this server keeps no large values: ask another one")
	}
	r, err := d.backend.Values().OpenValue(ctx, *of.large)
	if errors.Is(err, leasehold.ErrNotFound) {
		// NotFound would mean that there is no state, and Terraform would start from nothing.
		return nil, engine.Unavailable("the state was replaced many times while it was read: try again")
	}
	return r, err
}

// headOf reads what a state says of itself.
func (c *call) headOf(of content) (tfstate.Head, error) {
	r, err := c.door.bytes(c.ctx, of)
	if err != nil {
		return tfstate.Head{}, err
	}
	defer r.Close()
	return tfstate.ReadHead(r)
}

// receive reads a state. What does not fit in the log goes to where large values are, and
// is never whole in memory. Nothing names it until it is stored.
func (c *call) receive() (sent content, head tfstate.Head, err error) {
	if c.r.ContentLength > leasehold.MaxLarge {
		return sent, head, tooLarge()
	}
	door.Unhurried(c.w)
	sum, scan := md5.New(), tfstate.NewScanner()
	paced := pace.Body(c.w, c.r)
	body := io.TeeReader(http.MaxBytesReader(c.w, io.NopCloser(paced), leasehold.MaxLarge), io.MultiWriter(sum, scan))
	var first bytes.Buffer
	_, err = io.CopyN(&first, body, leasehold.MaxValue+1)
	switch {
	case err == nil:
		sent.large, err = c.putLarge(io.MultiReader(&first, body))
	case errors.Is(err, io.EOF):
		sent.value, err = first.String(), nil
	}
	switch {
	case scan.Err() != nil:
		return sent, head, scan.Err()
	case paced.Err != nil:
		return sent, head, unreadable(paced.Err)
	case err != nil && paced.Size > leasehold.MaxLarge:
		return sent, head, tooLarge()
	case err != nil:
		return sent, head, err
	}
	if err := door.First(scan.End(), matchMD5(c.r.Header, sum.Sum(nil))); err != nil {
		return sent, head, err
	}
	c.md5 = sum.Sum(nil)
	head, err = scan.Head()
	return sent, head, err
}

func (c *call) putLarge(r io.Reader) (*leasehold.Large, error) {
	if c.door.backend.Values() == nil {
		return nil, door.Invalidly(http.StatusRequestEntityTooLarge,
			"the state has more than %d bytes, and this server keeps no large values", leasehold.MaxValue)
	}
	large, err := c.door.backend.Values().PutValue(c.ctx, r)
	return &large, err
}

// unreadable says why a body did not come to its end.
func unreadable(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return door.Invalidly(http.StatusRequestTimeout, "the state did not arrive in time: nothing was written")
	}
	return door.Invalid("the body cannot be read, and nothing was written: %v", err)
}

func tooLarge() error {
	return door.Invalidly(http.StatusRequestEntityTooLarge,
		"the state has more than %d bytes, which is the most there can be", leasehold.MaxLarge)
}

func checkMD5(h http.Header, body []byte) error {
	sum := md5.Sum(body)
	return matchMD5(h, sum[:])
}

// matchMD5 refuses what is not as its sender meant it.
func matchMD5(h http.Header, sum []byte) error {
	said := h.Get("Content-Md5")
	if said == "" {
		return nil
	}
	want, err := base64.StdEncoding.DecodeString(said)
	switch {
	case err != nil || len(want) != md5.Size:
		return door.Invalid("header Content-MD5 is %s: write 16 bytes in base64", door.Brief(said))
	case !bytes.Equal(want, sum):
		return door.Invalid(
			"the body is not what header Content-MD5 says: it was damaged on its way, and nothing was done; " +
				"send it again")
	}
	return nil
}
