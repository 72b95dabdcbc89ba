package native

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/native/encode"
	"github.com/leasehold/leasehold/internal/engine"
)

// maxTransfers is how many large values may pass at a time: each has buffers of its own. One client can have half of
// them.
const maxTransfers = 256

// Large values pass through the door a part at a time, in either direction.
var (
	readPace  = door.Pace{Bytes: 1 << 20, Time: readTime}
	writePace = door.Pace{Bytes: 1 << 20, Time: writeTime}
)

// value reads the body of a put: into the command if it is short, beside the log if
// it is long.
func (h *httpWire) value(c *call, command *core.PutRecord) error {
	switch {
	case h.r.ContentLength == 0:
		return nil
	case h.r.ContentLength > leasehold.MaxLarge:
		return tooLarge(leasehold.MaxLarge)
	}
	want, err := h.contentDigest()
	if err == nil {
		err = c.door.backend.MayWrite(c.ctx, command.Namespace, command.Path, false)
	}
	if err != nil {
		return err
	}
	body := readPace.Body(h.w, h.r)
	var first bytes.Buffer
	_, err = first.ReadFrom(io.LimitReader(body, leasehold.MaxValue+1))
	switch {
	case err != nil:
		return unreadable(err)
	case first.Len() > leasehold.MaxValue:
		return c.readLarge(command, &sized{io.MultiReader(&first, body), h.r.ContentLength}, body, want)
	case want != nil && sha256.Sum256(first.Bytes()) != *want:
		return wrongDigest()
	}
	command.Value = first.String()
	return nil
}

// sized is a body that says how long it is; -1: it does not.
type sized struct {
	io.Reader
	size int64
}

// Size returns how many bytes come.
func (s *sized) Size() int64 { return s.size }

func (c *call) readLarge(command *core.PutRecord, all io.Reader, body *door.Body, want *leasehold.Digest) error {
	values := c.door.backend.Values()
	if values == nil {
		return tooLarge(leasehold.MaxValue)
	}
	leave, err := c.door.transfers.Enter(c.signed())
	if err != nil {
		return err
	}
	defer leave()
	large, err := values.PutValue(c.ctx, all)
	switch {
	case body.Err != nil:
		return unreadable(body.Err)
	case err != nil && body.Size > leasehold.MaxLarge:
		return tooLarge(leasehold.MaxLarge)
	case err != nil:
		return err
	case want != nil && large.SHA256 != *want:
		return wrongDigest() // nothing names what was put, and so it goes with the request
	}
	// The answer has its time from now on, however long the body took.
	c.within(writeTime)
	command.Large = &large
	return nil
}

func tooLarge(most int) error {
	return door.Invalidly(http.StatusRequestEntityTooLarge,
		"the body has more than %d bytes, which is the most there can be", most)
}

func wrongDigest() error {
	return invalid("the body is not what the header Content-Digest says: it was changed on its way")
}

// contentDigest reads the SHA-256 that the caller expects of the body, as RFC 9530 writes
// it; nil if it says none. Other algorithms are not looked at.
func (h *httpWire) contentDigest() (*leasehold.Digest, error) {
	for _, header := range h.r.Header["Content-Digest"] {
		for _, part := range strings.Split(header, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(part), "sha-256=:")
			if !ok {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, ":"))
			if err != nil || len(b) != sha256.Size || !strings.HasSuffix(text, ":") {
				return nil,
					invalid("header Content-Digest is %s: write sha-256=:…: with the digest in base64", brief(header))
			}
			return (*leasehold.Digest)(b), nil
		}
	}
	return nil, nil
}

// unreadable says why a body could not be read to its end.
func unreadable(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return door.Invalidly(http.StatusRequestTimeout,
			"the body did not arrive: at least %d bytes have to come within %v", readPace.Bytes, readPace.Time)
	}
	return invalid("the body cannot be read: %v", err)
}

// sendBytes answers with the bytes of a record and nothing else, or with a part of them.
func (h *httpWire) sendBytes(c *call, r *leasehold.Record) error {
	var content io.ReadSeeker = strings.NewReader(r.Value)
	if r.Large != nil {
		values := c.door.backend.Values()
		if values == nil {
			return engine.NoValue(*r.Large)
		}
		leave, err := c.door.transfers.Enter(c.signed())
		if err != nil {
			return err
		}
		defer leave()
		ctx, ended := c.door.backend.Proven(c.ctx, c.proof)
		defer ended()
		file, err := values.OpenValue(ctx, *r.Large)
		if err != nil {
			return err
		}
		defer file.Close()
		content = file
		h.w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(r.Large.SHA256[:])+":")
	}
	head := h.w.Header()
	head["Content-Type"], head["Cache-Control"], head["X-Content-Type-Options"] = bytesType, noStore, noSniff
	out, in := &refusedWriter{Writer: writePace.Writer(h.w)}, &noted{ReadSeeker: content}
	http.ServeContent(out, h.r, "", time.Time{}, in)
	switch {
	case out.status == http.StatusRequestedRangeNotSatisfiable:
		return door.Invalidly(out.status, "the header Range asks for what is not there: the value has %d bytes",
			sizeOf(r))
	case out.status != 0:
		return &door.Fault{Err: &leasehold.Error{Code: leasehold.Refused,
			Message: "the record is at another revision than the header If-Match says: read it again"},
			Status: out.status}
	case in.err != nil:
		return errCut
	}
	return nil
}

func sizeOf(r *leasehold.Record) int64 {
	if r.Large != nil {
		return r.Large.Size
	}
	return int64(len(r.Value))
}

// noted remembers why it could not be read. What is short of it must not pass for whole.
type noted struct {
	io.ReadSeeker
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	read, err := n.ReadSeeker.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return read, err
}

// refusedWriter leaves to the door what net/http would refuse in its own words.
type refusedWriter struct {
	*door.Writer
	status int // of the refusal; 0: there is none
}

// WriteHeader writes the status of what is not refused.
func (w *refusedWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.status = status
		return
	}
	w.Writer.WriteHeader(status)
}

// Write writes the next piece, and leaves out the text of a refusal.
func (w *refusedWriter) Write(p []byte) (int, error) {
	if w.status != 0 {
		return len(p), nil
	}
	return w.Writer.Write(p)
}

// version reads which version of a record is wanted; 0 for none in particular.
func (c *call) version() (leasehold.Revision, error) { return c.revisionOf("version") }

// versionOf finds one version of a record.
func (c *call) versionOf(path string, revision leasehold.Revision) (*leasehold.Record, error) {
	var v leasehold.Version
	var failure *leasehold.Error
	if err := c.look(func(view core.View) { v, failure = view.Version(c.namespace, path, revision) }); err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, failure
	}
	return &leasehold.Record{
		Path: v.Path, Value: v.Value, Large: v.Large, Create: v.Create, Mod: v.Revision, Version: v.Version,
		Session: v.Session, Token: v.Token,
	}, nil
}

// versions lists what a record is and was, the newest first.
func (c *call) versions() error {
	path := c.path("path")
	limit, badLimit := c.number("limit", v1.DefaultLimit, v1.MaxLimit)
	before, badAfter := c.revisionOf("after")
	if err := firstError(checkPath("path", path), badLimit, badAfter); err != nil {
		return err
	}
	var list []leasehold.Version
	var next leasehold.Revision
	var keeps int
	err := c.look(func(v core.View) {
		list, next = v.Versions(c.namespace, path, before, limit)
		keeps = v.Keeps(c.namespace, path)
	})
	if err != nil {
		return err
	}
	if len(list) == 0 && before == 0 {
		return &leasehold.Error{Code: leasehold.NotFound,
			Message: "no record " + path + ", and no former versions of it"}
	}
	c.send(func(b *encode.Buffer) {
		b.Open()
		encode.Array(b, "items", list, b.Version)
		if next != 0 {
			b.Text("next", strconv.FormatUint(uint64(next), 10))
		}
		if keeps != 0 {
			b.Number("keep", uint64(keeps))
		}
		b.Close()
	})
	return nil
}

// keep reads how many former versions a record is to keep: a number, or none.
func (c *call) keep() (int, error) {
	switch s := c.query.Get("keep"); s {
	case "":
		return 0, nil
	case "none":
		return leasehold.KeepNone, nil
	default:
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > leasehold.MaxKeep {
			return 0, invalid("keep is %s: write how many former versions are kept, 1 to %d, or none", brief(s),
				leasehold.MaxKeep)
		}
		return n, nil
	}
}
