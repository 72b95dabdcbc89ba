package azure

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// maxBlocks is how many blocks a blob can have, and how many can wait to become part of it.
// Azure allows more; here one command drops all of them, and no command may take long.
const maxBlocks = 10000

// A block is a part of a blob.
type block struct {
	ID   string `json:"id" xml:"Name"`
	Size int64  `json:"size" xml:"Size"`
}

// putBlock stores a block that is not part of the blob yet.
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
	path := c.at.Part(azureblob.RootBlocks) + name
	return c.decide(func(bool) (bool, error) {
		container, was, err := c.lookBoth()
		if err != nil {
			return false, err
		}
		if err := mayWrite(&was, &guard{guid: guid}, false); err != nil {
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
		still := []core.Compare{unchanged(c.at.ContainerPath(), container.mod), was.lease.asSeen(c.at.Resource())}
		_, done, err := c.do(still, put)
		if err != nil || !done {
			return false, err
		}
		h := c.w.Header()
		h["Content-MD5"] = []string{base64.StdEncoding.EncodeToString(body.md5)}
		h["x-ms-request-server-encrypted"] = []string{"false"}
		return true, c.answer(http.StatusCreated)
	})
}

// Blocks that never become part of a blob are forgotten after one to two weeks: they are bound
// to a session that is never renewed, one for each blob and week.
const week = 7 * 24 * time.Hour

func (c *call) blockSession() (string, error) {
	id := fmt.Sprintf("%s%d", c.at.Part(azureblob.RootBlocks), time.Now().Unix()/int64(week.Seconds()))
	_, err := c.engine.Do(c.ctx, &core.OpenSession{Namespace: c.door.config.Namespace, ID: id, TTL: 2 * week})
	return id, err
}

// roomForBlock refuses a block whose id is of another length than that of the others,
// as Azure does, and one too many.
func (c *call) roomForBlock(path string, length int) error {
	prefix := c.at.Part(azureblob.RootBlocks)
	var page core.RecordPage
	again := false
	err := c.read(func(v core.View) {
		page, _ = v.Records(c.door.config.Namespace,
			core.RecordQuery{From: prefix, To: core.PrefixEnd(prefix), Most: 1, KeysOnly: true, Count: true})
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
