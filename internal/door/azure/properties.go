package azure

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
)

// properties are those of a blob, a snapshot or a container, as Azure's clients see them.
type properties struct{ azureblob.Properties }

// record reads one record; nil if there is none.
func (c *call) record(path string) (r *leasehold.Record, err error) {
	err = c.read(func(v core.View) { r, _ = v.Record(c.door.config.Namespace, path, 0) })
	return r, err
}

// An item is something with properties and a lease, as it was read.
type item struct {
	properties
	found  bool
	mod    leasehold.Revision
	create leasehold.Revision
	lease  lease
}

// look reads the properties at a path.
func (c *call) look(v core.View, path string) (i item) {
	read := azureblob.Look(v, c.door.config.Namespace, path)
	i.Properties, i.found, i.mod, i.create = read.Properties, read.Found, read.Mod, read.Create
	return i
}

// lookContainer reads a container and its lease.
func (c *call) lookContainer(v core.View) item {
	i := c.look(v, c.at.ContainerPath())
	i.lease = c.lookLease(v, c.at.ContainerPath(), &i.properties)
	return i
}

// lookBlob reads a blob and its lease. A snapshot has no lease.
func (c *call) lookBlob(v core.View, at azureblob.Place) item {
	i := c.look(v, at.PropertiesPath())
	if at.Snapshot == "" {
		i.lease = c.lookLease(v, at.Resource(), &i.properties)
	}
	return i
}

var metadataName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

const maxMetadata = 8 << 10

// readMetadata reads what a request says of a thing. Names are the same in either case.
func (c *call) readMetadata() (map[string]string, error) {
	m, size := map[string]string{}, 0
	for name, values := range c.r.Header {
		key, ok := strings.CutPrefix(strings.ToLower(name), "x-ms-meta-")
		if !ok {
			continue
		}
		value := strings.Join(values, ",")
		switch size += len(key) + len(value); {
		case size > maxMetadata:
			return nil, errMetadataTooLarge
		case !metadataName.MatchString(key):
			return nil, errInvalidMetadata.with("HeaderName", name)
		}
		m[key] = value
	}
	return m, nil
}

func writeMetadata(h http.Header, m map[string]string) {
	for name, value := range m {
		h["x-ms-meta-"+name] = []string{value}
	}
}

// readContentHeaders reads how the bytes of a blob are to be shown. The headers of a put
// have a shorter form, which the longer one overrules.
func (c *call) readContentHeaders(p *properties, short bool) error {
	h := c.r.Header
	for _, f := range []struct {
		at         *string
		long, name string
	}{
		{&p.Type, "X-Ms-Blob-Content-Type", "Content-Type"},
		{&p.Encoding, "X-Ms-Blob-Content-Encoding", "Content-Encoding"},
		{&p.Language, "X-Ms-Blob-Content-Language", "Content-Language"},
		{&p.Cache, "X-Ms-Blob-Cache-Control", "Cache-Control"},
		{&p.Disposition, "X-Ms-Blob-Content-Disposition", ""},
	} {
		*f.at = h.Get(f.long)
		if *f.at == "" && short && f.name != "" {
			*f.at = h.Get(f.name)
		}
		if len(*f.at) > 1024 {
			return badHeader(f.long, *f.at)
		}
	}
	p.MD5 = h.Get("X-Ms-Blob-Content-Md5")
	if p.MD5 != "" && !validMD5(p.MD5) {
		return errInvalidMD5
	}
	return nil
}

// tags writes what every answer about a thing has.
func (p *properties) tags(h http.Header) {
	h["ETag"] = []string{p.ETag}
	h.Set("Last-Modified", timeOf(p.Modified))
}

// head writes the headers of a blob.
func (p *properties) head(h http.Header) {
	p.tags(h)
	h.Set("Content-Type", p.shownType())
	for _, f := range []struct{ name, value string }{
		{"Content-Encoding", p.Encoding}, {"Content-Language", p.Language}, {"Cache-Control", p.Cache},
		{"Content-Disposition", p.Disposition},
	} {
		if f.value != "" {
			h.Set(f.name, f.value)
		}
	}
	h["x-ms-blob-type"] = []string{"BlockBlob"}
	h["x-ms-creation-time"] = []string{timeOf(p.Created)}
	h["x-ms-server-encrypted"] = []string{"false"}
	if p.Copy != nil {
		h["x-ms-copy-id"] = []string{p.Copy.ID}
		h["x-ms-copy-source"] = []string{p.Copy.Source}
		h["x-ms-copy-status"] = []string{"success"}
		h["x-ms-copy-progress"] = []string{progress(p)}
		h["x-ms-copy-completion-time"] = []string{timeOf(p.Copy.At)}
	}
	writeMetadata(h, p.Metadata)
}

func progress(p *properties) string {
	n := strconv.FormatInt(p.Size, 10)
	return n + "/" + n
}

func (p *properties) shownType() string {
	if p.Type == "" {
		return "application/octet-stream"
	}
	return p.Type
}

// metadataNames returns the names in an order that does not change.
func metadataNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
