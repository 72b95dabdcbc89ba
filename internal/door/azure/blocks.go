package azure

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// maxBlocks is how many blocks a blob can have, and how many can wait to become part of
// it: fewer than in Azure, since all of them are dropped by one command.
const maxBlocks = 10000

// A block is a part of a blob that is there.
type block struct {
	ID   string `json:"id" xml:"Name"`
	Size int64  `json:"size" xml:"Size"`
}

// putBlock keeps a part of a blob to be.
func (c *call) putBlock() error {
	id := c.query.Get("blockid")
	name, ok := blockName(id)
	if !ok {
		return errInvalidBlockID
	}
	if source := c.r.Header.Get("X-Ms-Copy-Source"); source != "" {
		return errUnsupportedHeader.with("HeaderName", "x-ms-copy-source")
	}
	if err := c.early(false); err != nil {
		return err
	}
	body, err := c.readContent()
	if err != nil {
		return err
	}
	guid, err := c.leaseHeader()
	if err != nil {
		return err
	}
	path := c.at.part(rootBlocks) + name
	return c.decide(func(bool) (bool, error) {
		container, was, err := c.lookBoth()
		if err != nil {
			return false, err
		}
		if err := mayWrite(&was, guid, &conditions{}, false); err != nil {
			return false, err
		}
		if err := c.roomForBlock(path, len(name)); err != nil {
			return false, err
		}
		session, err := c.blockSession()
		if err != nil {
			return false, err
		}
		put := body.put(path)
		put.Session = session
		_, done, err := c.do([]core.Compare{unchanged(c.at.containerPath(), container.mod), was.lease.asSeen(c.at.resource())}, put)
		if err != nil || !done {
			return false, err
		}
		h := c.w.Header()
		h["Content-MD5"] = []string{base64.StdEncoding.EncodeToString(body.md5)}
		h["x-ms-request-server-encrypted"] = []string{"false"}
		return true, c.answer(http.StatusCreated)
	})
}

// Blocks that nobody makes a blob of are forgotten after one to two weeks: they are bound
// to a session that is never renewed, one for each blob and week.
const week = 7 * 24 * time.Hour

func (c *call) blockSession() (string, error) {
	id := fmt.Sprintf("%s%d", c.at.part(rootBlocks), time.Now().Unix()/int64(week.Seconds()))
	_, err := c.engine.Do(c.ctx, &core.OpenSession{Namespace: c.door.config.Namespace, ID: id, TTL: 2 * week})
	return id, err
}

// roomForBlock refuses a block whose id is of another length than that of the others,
// as Azure does, and one too many.
func (c *call) roomForBlock(path string, length int) error {
	prefix := c.at.part(rootBlocks)
	var page core.RecordPage
	again := false
	err := c.read(func(v core.View) {
		page, _ = v.Records(c.door.config.Namespace, core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), Most: 1, KeysOnly: true, Count: true})
		_, missing := v.Record(c.door.config.Namespace, path, 0)
		again = missing == nil
	})
	switch {
	case err != nil:
		return err
	case len(page.Records) > 0 && len(page.Records[0].Path)-len(prefix) != length:
		return errBlobOrBlock
	case page.Count >= maxBlocks && !again:
		return errTooManyBlocks
	}
	return nil
}

// A listed block is one line of a block list.
type listed struct {
	kind string // "Committed", "Uncommitted" or "Latest"
	id   string
}

// maxBlockLine is the most bytes between the tags of one line.
const maxBlockLine = 1024

// maxBlockList is the most bytes of a block list: each of its lines has at most 140.
const maxBlockList = 140*maxBlocks + 1024

// parseBlockList reads a block list. The order is that of the blob.
func parseBlockList(b []byte) (list []listed, err error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	depth, kind, complete := 0, "", false
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errInvalidXML
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 && token.Name.Local != "BlockList" || depth > 2 {
				return nil, errInvalidXML
			}
			if depth == 2 {
				if kind = token.Name.Local; kind != "Committed" && kind != "Uncommitted" && kind != "Latest" {
					return nil, errInvalidXML
				}
				if list = append(list, listed{kind: kind}); len(list) > maxBlocks {
					return nil, errBlockListTooLong
				}
			}
		case xml.EndElement:
			depth--
			complete = depth == 0
		case xml.CharData:
			if depth == 2 {
				if list[len(list)-1].id += string(token); len(list[len(list)-1].id) > maxBlockLine {
					return nil, errInvalidBlockID
				}
			}
		}
	}
	if !complete {
		return nil, errInvalidXML // also where there is nothing at all
	}
	for i := range list {
		list[i].id = strings.TrimSpace(list[i].id)
		if _, ok := blockName(list[i].id); !ok {
			return nil, errInvalidBlockID
		}
	}
	return list, nil
}

// putBlockList makes a blob of blocks.
func (c *call) putBlockList() error {
	metadata, err := c.readMetadata()
	if err != nil {
		return err
	}
	var shown properties
	if err := c.readContentHeaders(&shown, false); err != nil {
		return err
	}
	if err := c.early(false); err != nil {
		return err
	}
	text, err := c.smallBody(maxBlockList)
	if err != nil {
		return err
	}
	want, err := c.announcedMD5()
	if err != nil {
		return err
	}
	if want != nil && !bytes.Equal(want, md5Of(text)) {
		return errMD5Mismatch
	}
	list, err := parseBlockList(text)
	if err != nil {
		return err
	}
	return c.write(blobWrite{status: http.StatusCreated,
		change: func(was *item, p *properties) ([]core.Op, []core.Compare, error) {
			body, blocks, err := c.assemble(was, list)
			if err != nil {
				return nil, nil, err
			}
			kept, err := c.keep(bytes.NewReader(encodeBlocks(blocks)))
			if err != nil {
				return nil, nil, err
			}
			renew(p, &shown, metadata)
			p.Size, p.Blocks = body.size, len(blocks)
			return []core.Op{body.put(c.at.bytesPath()), kept.put(c.at.of(rootLists)), deleteAll(c.at.part(rootBlocks))}, nil, nil
		},
		answer: func(h http.Header, _ *properties) {
			h["Content-MD5"] = []string{base64.StdEncoding.EncodeToString(md5Of(text))} // of the list, as in Azure
		},
	})
}

func encodeBlocks(blocks []block) []byte {
	b, _ := json.Marshal(blocks)
	return b
}

// A source is where a part of a blob comes from: a block, or a part of the blob as it was.
type source struct {
	path   string // of the block; empty: of the blob as it was
	from   int64
	length int64
}

// assemble makes the bytes of a blob from its blocks, one after the other.
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
		s, ok := choose(c.at.part(rootBlocks), l, waiting, old)
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

// choose finds one line of a block list.
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
	prefix := c.at.part(rootBlocks)
	err := c.eachRecord(prefix, func(r *leasehold.Record) {
		b := contentOf(r)
		sizes[strings.TrimPrefix(r.Path, prefix)] = b.size
	})
	return sizes, err
}

// eachRecord goes over all records under a prefix, a page at a time.
func (c *call) eachRecord(prefix string, see func(*leasehold.Record)) error {
	from := prefix
	for {
		var page core.RecordPage
		err := c.read(func(v core.View) {
			page, _ = v.Records(c.door.config.Namespace, core.RecordQuery{From: from, To: core.PrefixEnd(prefix)})
		})
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			see(r)
			from = r.Path + "\x00"
		}
		if !page.More {
			return nil
		}
	}
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
	var record *leasehold.Record
	if err := c.read(func(v core.View) { record, _ = v.Record(c.door.config.Namespace, c.at.bytesPath(), 0) }); err != nil {
		return nil, content{}, err
	}
	if record == nil {
		return nil, content{}, nil // it changed meanwhile, which the transaction will find
	}
	return at, contentOf(record), nil
}

// readList reads the blocks that a blob is made of.
func (c *call) readList(was *item) (blocks []block, err error) {
	if !was.found || was.Blocks == 0 {
		return nil, nil
	}
	var record *leasehold.Record
	if err := c.read(func(v core.View) { record, _ = v.Record(c.door.config.Namespace, c.at.of(rootLists), 0) }); err != nil || record == nil {
		return nil, err
	}
	b := contentOf(record)
	r, err := c.openContent(b, 0, b.size)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return blocks, json.Unmarshal(text, &blocks)
}

// A joined reader reads sources one after the other, and has one of them open at a time.
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
		return j.openContent(j.old, s.from, s.length)
	}
	var record *leasehold.Record
	if err := j.read(func(v core.View) { record, _ = v.Record(j.door.config.Namespace, s.path, 0) }); err != nil {
		return nil, err
	}
	if record == nil {
		return nil, errInvalidBlockList
	}
	b := contentOf(record)
	return j.openContent(b, 0, b.size)
}

// getBlockList shows the blocks that a blob is made of, and those that wait.
func (c *call) getBlockList() error {
	kind := strings.ToLower(c.query.Get("blocklisttype"))
	if kind == "" {
		kind = "committed"
	}
	if kind != "committed" && kind != "uncommitted" && kind != "all" {
		return badQuery("blocklisttype", kind)
	}
	guid, err := c.leaseHeader()
	if err != nil {
		return err
	}
	_, was, err := c.lookBoth()
	if err != nil {
		return err
	}
	var waiting []block
	prefix := c.at.part(rootBlocks)
	err = c.eachRecord(prefix, func(r *leasehold.Record) {
		b := contentOf(r)
		waiting = append(waiting, block{blockID(strings.TrimPrefix(r.Path, prefix)), b.size})
	})
	switch {
	case err != nil:
		return err
	case !was.found && len(waiting) == 0:
		return errBlobNotFound
	}
	if err := was.lease.checkUse(guid, false); err != nil {
		return err
	}
	committed, err := c.readList(&was)
	if err != nil {
		return err
	}
	var shown blockLists
	if kind != "uncommitted" {
		shown.Committed = &blockEntry{committed}
	}
	if kind != "committed" {
		shown.Uncommitted = &blockEntry{waiting}
	}
	h := c.w.Header()
	if was.found {
		was.tags(h)
		h["x-ms-blob-content-length"] = []string{fmt.Sprint(was.Size)}
	}
	return c.answerXML(&shown)
}
