package azure

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // it is what Azure's clients check bytes with
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"hash"
	"io"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// content is the bytes of a blob or a block: in the record itself, or, if they are many,
// beside the log.
type content struct {
	value string
	large *leasehold.Large
	size  int64
	md5   []byte // of what came in; nil if it came from elsewhere
}

func contentOf(r *leasehold.Record) content {
	if r.Large != nil {
		return content{large: r.Large, size: r.Large.Size}
	}
	return content{value: r.Value, size: int64(len(r.Value))}
}

// put is the operation that makes a record of it.
func (b *content) put(path string) core.Op {
	return core.Op{Do: core.Put, Path: path, Value: b.value, Large: b.large}
}

// values returns where large bytes are kept.
func (c *call) values() (engine.Values, error) {
	v := c.door.backend.Values()
	if v == nil {
		return nil, errBodyTooLarge
	}
	return v, nil
}

// openContent returns a part of the bytes, which can be read until ctx ends.
func (c *call) openContent(ctx context.Context, b content, from, length int64) (io.ReadCloser, error) {
	if b.large == nil {
		return io.NopCloser(bytes.NewReader([]byte(b.value[from : from+length]))), nil
	}
	v, err := c.values()
	if err != nil {
		return nil, err
	}
	r, err := v.OpenValue(ctx, *b.large)
	if errors.Is(err, leasehold.ErrNotFound) {
		// NotFound would mean that there is no blob, and Terraform would start from nothing.
		return nil, engine.Unavailable("the bytes of the blob cannot be read now: " +
			"they were replaced while it was read, or are damaged; try again")
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.Seek(from, io.SeekStart); err != nil {
		_ = r.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, length), r}, nil
}

// readContent takes in the body of a request: as much as fits in a record at once, and
// the rest, if there is more, straight to where large bytes are kept.
func (c *call) readContent() (content, error) {
	announced := c.r.ContentLength
	if announced > leasehold.MaxLarge {
		return content{}, errBodyTooLarge.with("MaxLimit", "268435456")
	}
	want, err := c.announcedMD5()
	if err != nil {
		return content{}, err
	}
	b, err := c.keep(pace.Body(c.w, c.r))
	switch {
	case err != nil:
		return b, err
	case announced >= 0 && b.size != announced:
		return b, errIncompleteBody
	case want != nil && subtle.ConstantTimeCompare(want, b.md5) != 1:
		return b, errMD5Mismatch.with("UserSpecifiedMd5", base64.StdEncoding.EncodeToString(want)).
			with("ServerCalculatedMd5", base64.StdEncoding.EncodeToString(b.md5))
	}
	return b, nil
}

// keep stores bytes under no name: they can be read once a record names them.
func (c *call) keep(r io.Reader) (content, error) {
	sum := md5.New() //nolint:gosec // as above
	counted := &counter{r: io.TeeReader(r, sum)}
	first, err := io.ReadAll(io.LimitReader(counted, leasehold.MaxValue+1))
	if err != nil {
		return content{}, bodyFault(err)
	}
	if len(first) <= leasehold.MaxValue {
		return content{value: string(first), size: counted.n, md5: sum.Sum(nil)}, nil
	}
	return c.keepLarge(io.MultiReader(bytes.NewReader(first), counted), counted, sum)
}

func (c *call) keepLarge(r io.Reader, counted *counter, sum hash.Hash) (content, error) {
	v, err := c.values()
	if err != nil {
		return content{}, err
	}
	leave, err := c.door.uploads.Enter(c.ctx)
	if err != nil {
		return content{}, err
	}
	defer leave()
	counted.most = leasehold.MaxLarge
	large, err := v.PutValue(c.ctx, r)
	if counted.failed != nil {
		return content{}, bodyFault(counted.failed)
	}
	if err != nil {
		return content{}, err
	}
	return content{large: &large, size: large.Size, md5: sum.Sum(nil)}, nil
}

// bodyFault returns what went wrong while a body was read.
func bodyFault(err error) error {
	var told *fault
	var ours *leasehold.Error
	switch {
	case errors.As(err, &told), errors.As(err, &ours), errors.Is(err, context.Canceled):
		return err
	}
	return because(errIncompleteBody, err)
}

// A counter counts what is read, and stops at the most that there can be.
type counter struct {
	r      io.Reader
	n      int64
	most   int64 // 0: no end
	failed error // other than the end
}

func (r *counter) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.n += int64(n)
	if r.most != 0 && r.n > r.most {
		err = errBodyTooLarge
	}
	if err != nil && err != io.EOF {
		r.failed = err
	}
	return n, err
}

// mostDrained is how much of a refused body is read from a client without proof.
const mostDrained = 64 << 20

// drainBody reads a refused body, so that the client sees why it was refused instead of a
// connection that breaks: after that, azurerm does not try again. A client that proved who it
// is has as long as for a body that is taken.
func (c *call) drainBody() {
	most, drained := int64(mostDrained), door.Pace{Time: pieceTime, Whole: pieceTime}
	if c.who != "" {
		most, drained = leasehold.MaxLarge, pace
	}
	if c.r.ContentLength > most {
		c.w.Header().Set("Connection", "close")
		return
	}
	_, _ = io.CopyN(io.Discard, drained.Body(c.w, c.r), most)
}

// smallBody reads a body that is a document.
func (c *call) smallBody(most int64) ([]byte, error) {
	if c.r.ContentLength > most {
		return nil, errBodyTooLarge
	}
	b, err := io.ReadAll(io.LimitReader(pace.Body(c.w, c.r), most+1))
	switch {
	case err != nil:
		return nil, bodyFault(err)
	case int64(len(b)) > most:
		return nil, errBodyTooLarge
	case c.r.ContentLength >= 0 && int64(len(b)) != c.r.ContentLength:
		return nil, errIncompleteBody
	}
	return b, nil
}

// announcedMD5 reads the MD5 that the body should have; nil if the client gave none.
func (c *call) announcedMD5() ([]byte, error) {
	value := c.r.Header.Get("Content-Md5")
	if value == "" {
		return nil, nil
	}
	if !validMD5(value) {
		return nil, errInvalidMD5
	}
	return base64.StdEncoding.DecodeString(value)
}

func validMD5(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(b) == md5.Size
}

func md5Of(b []byte) []byte {
	sum := md5.Sum(b) //nolint:gosec // as above
	return sum[:]
}
