package azure

import (
	"net/http"
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// snapshotBlob keeps a blob as it is. For leases it counts as a read.
func (c *call) snapshotBlob() error {
	if c.at.Snapshot != "" {
		return badQuery("snapshot", c.at.Snapshot)
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
		taken.Snapshot = snapshotTime(time.Now().UnixNano())
		p := i.properties
		p.Settled, p.Broken, p.Ends = 0, 0, nil // a snapshot has no lease
		if len(metadata) > 0 {
			p.Metadata = metadata
			p.Touch()
		}
		body, err := bytesOf(&i, record)
		if err != nil {
			return false, err
		}
		// The blob is written too, unchanged: a deletion that saw no snapshots then looks again.
		still := []core.Compare{unchanged(c.at.PropertiesPath(), i.mod), unchanged(taken.PropertiesPath(), 0)}
		_, done, err := c.do(still,
			core.Op{Do: core.Put, Path: taken.PropertiesPath(), Value: p.Encode()}, body.put(taken.BytesPath()),
			core.Op{Do: core.Put, Path: c.at.PropertiesPath(), Value: i.Encode()})
		if err != nil || !done {
			return false, err
		}
		h := c.w.Header()
		p.tags(h)
		h["x-ms-snapshot"] = []string{taken.Snapshot}
		h["x-ms-request-server-encrypted"] = []string{"false"}
		return true, c.answer(http.StatusCreated)
	})
}
