package azure

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold"
)

// The XML documents that clients are sent, in the order of elements that Azure has. Some
// clients read them by position, so golden files in testdata hold their bytes.

// xmlHead is the declaration that each of them begins with.
const xmlHead = `<?xml version="1.0" encoding="utf-8"?>`

// encodeXML returns a whole document. Characters that XML cannot have become U+FFFD.
func encodeXML(document any) ([]byte, error) {
	b, err := xml.Marshal(document)
	return append([]byte(xmlHead), b...), err
}

// answerXML ends a request with a document.
func (c *call) answerXML(document any) error {
	b, err := encodeXML(document)
	if err != nil {
		return err
	}
	return c.streamXML(func(w io.Writer) error {
		_, _ = w.Write(b)
		return nil
	})
}

// streamXML ends a request with what write writes.
func (c *call) streamXML(write func(io.Writer) error) error {
	c.w.Header().Set("Content-Type", "application/xml")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	return write(pace.Writer(c.w))
}

// An element is one whose name is not known before: a detail of an error, or metadata.
type element struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
}

func newElement(name, text string) element {
	return element{XMLName: xml.Name{Local: name}, Text: text}
}

// An errorDocument is the body of a refusal.
type errorDocument struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	Detail  []element
}

// enumeration is what every list begins with: the question, repeated.
type enumeration struct {
	XMLName         xml.Name `xml:"EnumerationResults"`
	ServiceEndpoint string   `xml:",attr"`
	ContainerName   string   `xml:",attr,omitempty"`
	Prefix          string   `xml:",omitempty"`
	Marker          string   `xml:",omitempty"`
	MaxResults      int      `xml:",omitempty"`
	Delimiter       string   `xml:",omitempty"`
}

// containerList is the containers of an account.
type containerList struct {
	enumeration
	Containers struct{ Container []containerEntry }
	NextMarker string
}

type containerEntry struct {
	Name       string
	Properties containerProperties
	Metadata   *metadataEntry
}

type containerProperties struct {
	Modified string `xml:"Last-Modified"`
	Etag     string
	*leaseEntry
	HasImmutabilityPolicy bool
	HasLegalHold          bool
}

func newContainerEntry(name string, i *item, metadata bool) containerEntry {
	shown := containerProperties{Modified: timeOf(i.Modified), Etag: i.ETag, leaseEntry: newLeaseEntry(&i.lease)}
	return containerEntry{Name: name, Properties: shown, Metadata: newMetadataEntry(metadata, i.Metadata)}
}

// blobList is the blobs of a container. The lister writes them while it reads them, and
// only then knows the marker: encoding/xml goes over fields in their order.
type blobList struct {
	enumeration
	Blobs      *lister
	NextMarker *string
}

// A blobPrefix stands for all blobs whose names begin with it.
type blobPrefix struct {
	XMLName xml.Name `xml:"BlobPrefix"`
	Name    string
}

type blobEntry struct {
	XMLName    xml.Name `xml:"Blob"`
	Name       string
	Snapshot   string `xml:",omitempty"`
	Properties blobProperties
	Metadata   *metadataEntry
}

type blobProperties struct {
	Created     string `xml:"Creation-Time"`
	Modified    string `xml:"Last-Modified"`
	Etag        string
	Length      int64  `xml:"Content-Length"`
	Type        string `xml:"Content-Type"`
	Encoding    string `xml:"Content-Encoding"`
	Language    string `xml:"Content-Language"`
	MD5         string `xml:"Content-MD5"`
	Cache       string `xml:"Cache-Control"`
	Disposition string `xml:"Content-Disposition"`
	BlobType    string
	*leaseEntry
	*copyEntry
	ServerEncrypted bool
}

// newBlobEntry lists a blob; a snapshot has no lease.
func newBlobEntry(name, snapshot string, p *properties, l *lease, q *listing) blobEntry {
	entry := blobEntry{Name: name, Snapshot: snapshot, Metadata: newMetadataEntry(q.includes("metadata"), p.Metadata)}
	entry.Properties = blobProperties{
		Created: timeOf(p.Created), Modified: timeOf(p.Modified), Etag: strings.Trim(p.ETag, `"`),
		Length: p.Size, Type: p.shownType(), Encoding: p.Encoding, Language: p.Language, MD5: p.MD5,
		Cache: p.Cache, Disposition: p.Disposition, BlobType: "BlockBlob",
		leaseEntry: newLeaseEntry(l),
	}
	if p.Copy != nil && q.includes("copy") {
		entry.Properties.copyEntry = newCopyEntry(p)
	}
	return entry
}

type leaseEntry struct {
	LeaseStatus   string
	LeaseState    string
	LeaseDuration string `xml:",omitempty"`
}

func newLeaseEntry(l *lease) *leaseEntry {
	if l == nil {
		return nil
	}
	entry := &leaseEntry{LeaseStatus: l.status(), LeaseState: l.state.String()}
	if l.state == leasehold.Leased {
		entry.LeaseDuration = l.kind()
	}
	return entry
}

type copyEntry struct {
	CopyID         string `xml:"CopyId"`
	CopySource     string
	CopyStatus     string
	CopyProgress   string
	CopyCompletion string `xml:"CopyCompletionTime"`
}

func newCopyEntry(p *properties) *copyEntry {
	return &copyEntry{
		CopyID: p.Copy.ID, CopySource: p.Copy.Source, CopyStatus: "success",
		CopyProgress: progress(p), CopyCompletion: timeOf(p.Copy.At),
	}
}

type metadataEntry struct{ Elements []element }

// newMetadataEntry returns nil, and so no element, unless metadata was asked for.
func newMetadataEntry(asked bool, m map[string]string) *metadataEntry {
	if !asked {
		return nil
	}
	entry := &metadataEntry{}
	for _, name := range metadataNames(m) {
		entry.Elements = append(entry.Elements, newElement(name, m[name]))
	}
	return entry
}

// blockLists are the blocks of a blob: those that it is made of, and those that wait.
type blockLists struct {
	XMLName     xml.Name    `xml:"BlockList"`
	Committed   *blockEntry `xml:"CommittedBlocks"`
	Uncommitted *blockEntry `xml:"UncommittedBlocks"`
}

type blockEntry struct{ Block []block }

// signedIdentifiers are the access policies of a container: it has none.
type signedIdentifiers struct {
	XMLName xml.Name `xml:"SignedIdentifiers"`
}

// serviceProperties are what can be set for an account. The zero value says that all of
// it is off.
type serviceProperties struct {
	XMLName               xml.Name `xml:"StorageServiceProperties"`
	Logging               loggingProperties
	HourMetrics           metricsProperties
	MinuteMetrics         metricsProperties
	Cors                  struct{}
	DeleteRetentionPolicy toggle
	StaticWebsite         toggle
}

type loggingProperties struct {
	Version         string
	Delete          bool
	Read            bool
	Write           bool
	RetentionPolicy toggle
}

type metricsProperties struct {
	Version         string
	Enabled         bool
	RetentionPolicy toggle
}

type toggle struct{ Enabled bool }

func newServiceProperties() *serviceProperties {
	const version = "1.0"
	metrics := metricsProperties{Version: version}
	return &serviceProperties{
		Logging: loggingProperties{Version: version}, HourMetrics: metrics, MinuteMetrics: metrics,
	}
}
