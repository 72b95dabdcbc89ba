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

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// Block lists. Large uploads of the SDKs arrive as blocks in any order, several at a time, and are made a blob by a
// list that names them. A list may mix new blocks with those of the blob as it was, so that a client can replace a
// part.

// A listed is one line of a block list.
type listed struct {
	kind string // "Committed", "Uncommitted" or "Latest"
	id   string
}

// maxBlockLine is the most bytes between the tags of one line.
const maxBlockLine = 1024

// maxBlockList is the largest block list, in bytes: each of its lines has at most 140.
const maxBlockList = 140*maxBlocks + 1024

// maxQuotes is how many quotation marks a block list may have: those of two attributes for each line, which say
// nothing. In memory an attribute has fifty times its length.
const maxQuotes = 4*maxBlocks + 64

// parseBlockList reads a block list. encoding/xml's struct decoding would lose the order between lines of different
// kinds, and the order is that of the blob.
func parseBlockList(b []byte) (list []listed, err error) {
	if bytes.Count(b, []byte{'"'})+bytes.Count(b, []byte{'\''}) > maxQuotes {
		return nil, errInvalidXML
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	depth, kind, complete := 0, "", false
	var id []byte // of the line: its text can come in many pieces
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
			if depth == 2 {
				list[len(list)-1].id = string(id)
				id = id[:0]
			}
			depth--
			complete = depth == 0
		case xml.CharData:
			if depth == 2 {
				if id = append(id, token...); len(id) > maxBlockLine {
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
			p.Renew(&shown.Properties, metadata)
			p.Size, p.Blocks = body.size, len(blocks)
			return []core.Op{body.put(c.at.BytesPath()), kept.put(c.at.Of(azureblob.RootLists)),
				azureblob.DeleteAll(c.at.Part(azureblob.RootBlocks))}, nil, nil
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

// readList reads the blocks that a blob is made of.
func (c *call) readList(was *item) (blocks []block, err error) {
	if !was.found || was.Blocks == 0 {
		return nil, nil
	}
	record, err := c.record(c.at.Of(azureblob.RootLists))
	if err != nil || record == nil {
		return nil, err
	}
	b := contentOf(record)
	r, err := c.openContent(c.ctx, b, 0, b.size)
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

// getBlockList shows the blocks that a blob is made of, and those that are not committed yet.
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
	prefix := c.at.Part(azureblob.RootBlocks)
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
