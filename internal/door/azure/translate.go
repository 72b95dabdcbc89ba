package azure

import (
	"encoding/base64"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// timeOf writes a moment as Azure does in headers.
func timeOf(ns int64) string {
	return time.Unix(0, ns).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
}

// snapshotTime writes a moment as Azure names snapshots: with seven decimals.
func snapshotTime(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.0000000Z")
}

func validSnapshot(s string) bool {
	_, err := time.Parse("2006-01-02T15:04:05.0000000Z", s)
	return err == nil && len(s) == len("2006-01-02T15:04:05.0000000Z")
}

// infinite is the duration of a lease that does not end by time.
const infinite = -1

// ttlOf is the TTL of a lease in the core; 0 for one without end.
func ttlOf(seconds int) time.Duration {
	if seconds == infinite {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// secondsOf is the duration of a lease with a TTL in the core.
func secondsOf(ttl time.Duration) int {
	if ttl == 0 {
		return infinite
	}
	return int(ttl.Seconds())
}

// blockName is a block's id as a part of a path; false if it is none.
func blockName(id string) (string, bool) {
	raw, err := base64.StdEncoding.DecodeString(id)
	if err != nil || len(raw) == 0 || len(raw) > 64 {
		return "", false
	}
	return base64.RawURLEncoding.EncodeToString(raw), true
}

// blockID reads back what blockName wrote.
func blockID(name string) string {
	raw, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// unchanged is written often, and so has a short name here.
func unchanged(path string, mod leasehold.Revision) core.Compare {
	return azureblob.Unchanged(path, mod)
}
