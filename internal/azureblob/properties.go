package azureblob

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureaccount"
)

// Properties are what is kept of a blob, a snapshot or a container besides its bytes.
type Properties struct {
	Created     int64             `json:"created"`  // Unix nanoseconds
	Modified    int64             `json:"modified"` // Unix nanoseconds
	ETag        string            `json:"etag"`
	Metadata    map[string]string `json:"metadata,omitempty"` // names in lower case
	Size        int64             `json:"size,omitempty"`
	Type        string            `json:"type,omitempty"`
	Encoding    string            `json:"encoding,omitempty"`
	Language    string            `json:"language,omitempty"`
	Disposition string            `json:"disposition,omitempty"`
	Cache       string            `json:"cache,omitempty"`
	MD5         string            `json:"md5,omitempty"` // in base64
	Copy        *Copied           `json:"copy,omitempty"`
	Blocks      int               `json:"blocks,omitempty"` // how many it was made of; 0: it was put whole

	// An ended lease is shown until something is written (Settled), and an expired one
	// may be broken afterwards (Broken). Either remembers the token of the lease it means.
	Settled leasehold.Token `json:"settled,omitempty"`
	Broken  leasehold.Token `json:"broken,omitempty"`

	// Leases that somebody broke, the newest last: their holders may come late, when others
	// have had the blob since, and are told.
	Ends []End `json:"ends,omitempty"`

	// A container that is being deleted is gone for everybody, and its blobs are on
	// their way out.
	Deleting bool `json:"deleting,omitempty"`
}

// Copied is where the bytes of a blob came from.
type Copied struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	At     int64  `json:"at"`
}

// Encode returns the value of the record. What would not fit with it is forgotten of the breaks, the
// oldest first: texts of others must not keep a blob from being written or leased.
func (p *Properties) Encode() string {
	fits := *p
	b, _ := json.Marshal(fits)
	for len(b) > leasehold.MaxValue && len(fits.Ends) > 0 {
		fits.Ends = fits.Ends[1:]
		b, _ = json.Marshal(fits)
	}
	return string(b)
}

// Touch gives the blob the tag and time of a change. Its clock never goes back.
func (p *Properties) Touch() {
	p.ETag, p.Modified = azureaccount.NewETag(), max(time.Now().UnixNano(), p.Modified)
}
