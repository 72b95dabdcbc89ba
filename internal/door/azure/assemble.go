package azure

import (
	"io"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
)

// A source is where a part of a blob comes from: a block, or a part of the blob as it was.
type source struct {
	path   string // of the block; empty: of the blob as it was
	from   int64
	length int64
}

// assemble makes the bytes of a blob from its blocks, in the order of the list.
func (c *call) assemble(was *item, list []listed) (body content, blocks []block, err error) {
	waiting, err := c.waitingBlocks()
	if err != nil {
		return body, nil, err
	}
	old, bytes, err := c.committedBlocks(was)
	if err != nil {
		return body, nil, err
	}
	var sources []source
	total := int64(0)
	for _, l := range list {
		s, ok := choose(c.at.Part(azureblob.RootBlocks), l, waiting, old)
		if !ok {
			return body, nil, errInvalidBlockList
		}
		if total += s.length; total > leasehold.MaxLarge {
			return body, nil, errBodyTooLarge
		}
		sources = append(sources, s)
		blocks = append(blocks, block{l.id, s.length})
	}
	from := &joined{call: c, old: bytes, sources: sources}
	defer from.Close()
	body, err = c.keep(from)
	if err == nil && body.size != total {
		err = errInvalidBlockList // a block was replaced meanwhile by another of its name
	}
	return body, blocks, err
}

// A joined reads sources one after the other, with one of them open at a time: a blob may have tens of thousands of
// blocks.
type joined struct {
	*call
	old     content
	sources []source
	open    io.ReadCloser
}

func (j *joined) Read(b []byte) (int, error) {
	for {
		if j.open == nil {
			if len(j.sources) == 0 {
				return 0, io.EOF
			}
			r, err := j.next(j.sources[0])
			if err != nil {
				return 0, err
			}
			j.open, j.sources = r, j.sources[1:]
		}
		n, err := j.open.Read(b)
		if err == io.EOF {
			err = j.open.Close()
			j.open = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Close closes what is open, if not all was read.
func (j *joined) Close() {
	if j.open != nil {
		_ = j.open.Close()
	}
}

func (j *joined) next(s source) (io.ReadCloser, error) {
	if s.path == "" {
		if s.from+s.length > j.old.size {
			return nil, errInvalidBlockList
		}
		return j.openContent(j.ctx, j.old, s.from, s.length)
	}
	record, err := j.record(s.path)
	if err != nil {
		return nil, err
	}
	if record == nil {
		return nil, errInvalidBlockList
	}
	b := contentOf(record)
	return j.openContent(j.ctx, b, 0, b.size)
}

// choose finds the source of one line of a block list. "Latest" prefers a block that is not committed yet.
func choose(prefix string, l listed, waiting map[string]int64, old map[string]source) (source, bool) {
	name, _ := blockName(l.id)
	if size, ok := waiting[name]; ok && l.kind != "Committed" {
		return source{path: prefix + name, length: size}, true
	}
	s, ok := old[name]
	return s, ok && l.kind != "Uncommitted"
}

// waitingBlocks returns the sizes of the blocks that are not part of the blob yet, by name.
func (c *call) waitingBlocks() (map[string]int64, error) {
	sizes := map[string]int64{}
	prefix := c.at.Part(azureblob.RootBlocks)
	err := c.eachRecord(prefix, func(r *leasehold.Record) {
		b := contentOf(r)
		sizes[strings.TrimPrefix(r.Path, prefix)] = b.size
	})
	return sizes, err
}

// committedBlocks returns where in a blob its blocks are, and its bytes.
func (c *call) committedBlocks(was *item) (map[string]source, content, error) {
	blocks, err := c.readList(was)
	if err != nil || len(blocks) == 0 {
		return nil, content{}, err
	}
	at, from := map[string]source{}, int64(0)
	for _, b := range blocks {
		name, _ := blockName(b.ID)
		at[name] = source{from: from, length: b.Size}
		from += b.Size
	}
	record, err := c.record(c.at.BytesPath())
	if err != nil {
		return nil, content{}, err
	}
	if record == nil {
		return nil, content{}, nil // it changed meanwhile, which the transaction will find
	}
	return at, contentOf(record), nil
}
