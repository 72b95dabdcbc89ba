package azure

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// maxListed is the most that one answer lists, as in Azure. It is also what a request without
// a number gets: azurerm looks at the first page alone.
const maxListed = 5000

// A listing is what a request wants to have listed.
type listing struct {
	prefix, delimiter string
	marker            string // the name to begin with, as the answer before said
	most              int
	include           []string
}

func (c *call) readListing(allowed ...string) (q listing, err error) {
	q = listing{prefix: c.query.Get("prefix"), delimiter: c.query.Get("delimiter"), most: maxListed}
	if value := c.query.Get("maxresults"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 {
			return q, errOutOfRangeQuery.with("QueryParameterName", "maxresults").with("QueryParameterValue", value)
		}
		q.most = min(n, maxListed)
	}
	if value := c.query.Get("marker"); value != "" {
		b, err := base64.RawURLEncoding.DecodeString(value)
		if err != nil || len(b) == 0 {
			return q, badQuery("marker", value)
		}
		q.marker = string(b)
	}
	for _, value := range c.query["include"] {
		for one := range strings.SplitSeq(value, ",") {
			one = strings.ToLower(strings.TrimSpace(one))
			if one != "" && !slices.Contains(allowed, one) {
				return q, badQuery("include", one)
			}
			q.include = append(q.include, one)
		}
	}
	return q, nil
}

func (q *listing) includes(what string) bool { return slices.Contains(q.include, what) }

// nextMarker is how the answer says where to go on.
func nextMarker(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// repeated returns the question, as answers repeat it.
func (q *listing) repeated(c *call) enumeration {
	e := enumeration{
		ServiceEndpoint: c.serviceURL(), ContainerName: c.at.Container,
		Prefix: q.prefix, Marker: c.query.Get("marker"), Delimiter: q.delimiter,
	}
	if c.query.Get("maxresults") != "" {
		e.MaxResults = q.most
	}
	return e
}

// serviceURL is the account's address, as the client wrote it.
func (c *call) serviceURL() string {
	if c.host {
		return c.base() + "/"
	}
	return c.base() + "/" + c.at.Account + "/"
}

// blobIncludes can be asked for beside the blobs. Nothing deleted and no older version is ever
// kept, so to include those changes nothing.
var blobIncludes = []string{
	"metadata", "snapshots", "copy", "deleted", "versions", "deletedwithversions", "tags",
	"immutabilitypolicy", "legalhold", "permissions",
}

// listBlobs lists the blobs of a container. The answer may be large, and is written while the
// blobs are read.
func (c *call) listBlobs() error {
	q, err := c.readListing(blobIncludes...)
	if err != nil {
		return err
	}
	if q.includes("snapshots") && q.delimiter != "" {
		return badQuery("include", "snapshots")
	}
	if _, err := c.readContainer(); err != nil {
		return err
	}
	w := &lister{call: c, q: q, root: c.at.Within(azureblob.RootBlobs)}
	w.from = max(w.root+q.prefix, w.root+q.marker)
	// What goes wrong with the first page can still be said.
	if w.first, err = w.page(); err != nil {
		return err
	}
	return c.streamXML(func(out io.Writer) error {
		buffered := bufio.NewWriterSize(out, 32<<10)
		_, _ = buffered.WriteString(xmlHead)
		answer := &blobList{enumeration: q.repeated(c), Blobs: w, NextMarker: &w.marker}
		if xml.NewEncoder(buffered).Encode(answer) != nil || buffered.Flush() != nil {
			return door.ErrCut
		}
		return nil
	})
}

// A lister goes over the blobs of a container.
type lister struct {
	*call
	q      listing
	root   string
	first  []any
	from   string // the path to go on with
	count  int
	size   int    // bytes of the page that is put together
	marker string // where to go on in another answer; empty: that was all
	done   bool
}

// MarshalXML writes page after page, so that no answer is whole in memory.
func (w *lister) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for page := w.first; ; {
		for _, entry := range page {
			if err := e.Encode(entry); err != nil {
				return err
			}
		}
		if w.done {
			return e.EncodeToken(start.End())
		}
		var err error
		if page, err = w.page(); err != nil {
			return err
		}
	}
}

// A found blob is one as it was read, and when.
type found struct {
	name string
	properties
	lease lease
}

// page lists the next page: entries and prefixes.
func (w *lister) page() (entries []any, err error) {
	w.size = 0
	w.listed.Shrink(0) // the page before is sent
	var list []found
	var page core.RecordPage
	err = w.read(func(v core.View) {
		page, _ = v.Records(w.door.config.Namespace,
			core.RecordQuery{From: w.from, To: core.PrefixEnd(w.root + w.q.prefix)})
		for _, r := range page.Records {
			name := strings.TrimPrefix(r.Path, w.root)
			var p properties
			if json.Unmarshal([]byte(r.Value), &p) != nil {
				continue
			}
			list = append(list, found{name, p, w.lookLease(v, w.at.Within(azureblob.RootBytes)+name, &p)})
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		if entries, err = w.add(entries, &list[i]); w.done || err != nil {
			return entries, err
		}
	}
	w.done = !page.More
	if last := page.Next(); last != "" && w.from <= last {
		w.from = last + "\x00"
	}
	return entries, nil
}

// add lists one blob, or the prefix that it belongs to, if there is room.
func (w *lister) add(entries []any, f *found) ([]any, error) {
	if w.root+f.name < w.from {
		return entries, nil // its prefix is listed already
	}
	if w.count >= w.q.most {
		w.marker, w.done = nextMarker(f.name), true
		return entries, nil
	}
	w.count++
	if after := strings.TrimPrefix(f.name, w.q.prefix); w.q.delimiter != "" {
		if before, _, grouped := strings.Cut(after, w.q.delimiter); grouped {
			prefix := w.q.prefix + before + w.q.delimiter
			w.from = core.PrefixEnd(w.root + prefix)
			return append(entries, blobPrefix{Name: prefix}), nil
		}
	}
	if w.q.includes("snapshots") {
		var err error
		if entries, err = w.addSnapshots(entries, f.name); err != nil {
			return entries, err
		}
	}
	w.size += sizeOf(f.name, &f.properties)
	if err := w.grown(w.size); err != nil {
		return entries, err
	}
	return append(entries, newBlobEntry(f.name, "", &f.properties, &f.lease, &w.q)), nil
}

func (w *lister) addSnapshots(entries []any, name string) ([]any, error) {
	at := w.at
	at.Blob = name
	prefix := at.Part(azureblob.RootSnapshots)
	var full error
	err := w.eachRecord(prefix, func(r *leasehold.Record) {
		var p properties
		if full == nil && json.Unmarshal([]byte(r.Value), &p) == nil {
			w.size += sizeOf(name, &p)
			full = w.grown(w.size)
			w.count++
			entries = append(entries, newBlobEntry(name, strings.TrimPrefix(r.Path, prefix), &p, nil, &w.q))
		}
	})
	return entries, cmp.Or(full, err)
}

// listContainers lists the containers of an account.
func (c *call) listContainers() error {
	q, err := c.readListing("metadata", "deleted", "system")
	if err != nil {
		return err
	}
	answer := &containerList{enumeration: q.repeated(c)}
	root, size := azureblob.RootBytes+c.at.Account+"/", 0
	for from, n := max(root+q.prefix, root+q.marker), 0; from != ""; n++ {
		name, i, after, err := c.nextContainer(from, root+q.prefix)
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		if n >= q.most {
			answer.NextMarker = nextMarker(name)
			break
		}
		size += sizeOf(name, &i.properties)
		if err := c.grown(size); err != nil {
			return err
		}
		answer.Containers.Container = append(answer.Containers.Container,
			newContainerEntry(name, &i, q.includes("metadata")))
		from = after
	}
	return c.answerXML(answer)
}

// nextContainer finds the next container from a path on. Between the records of containers are
// those of their blobs; they are skipped, and not read.
func (c *call) nextContainer(from, prefix string) (name string, i item, after string, err error) {
	root := azureblob.RootBytes + c.at.Account + "/"
	err = c.read(func(v core.View) {
		for {
			page, _ := v.Records(c.door.config.Namespace,
				core.RecordQuery{From: from, To: core.PrefixEnd(prefix), Most: 1, KeysOnly: true})
			if len(page.Records) == 0 {
				return
			}
			path := page.Records[0].Path
			container, _, inside := strings.Cut(strings.TrimPrefix(path, root), "/")
			if inside {
				from = core.PrefixEnd(root + container + "/")
				continue
			}
			from = path + "\x00"
			at := &call{door: c.door, at: azureblob.Place{Account: c.at.Account, Container: container}}
			if i = at.lookContainer(v); i.found {
				name, after = container, from
				return
			}
		}
	})
	return name, i, after, err
}

// entrySize is about what an entry of a list has beside its name and metadata.
const entrySize = 512

// sizeOf returns about how many bytes an entry of a list has in memory.
func sizeOf(name string, p *properties) int {
	size := entrySize + len(name)
	for key, value := range p.Metadata {
		size += len(key) + len(value)
	}
	return size
}

// grown says how many bytes a list has in memory by now. It waits until there is room for so many, or returns an error
// if there is not.
func (c *call) grown(size int) error {
	return c.listed.Grow(c.ctx, c.door.backend, size, "a list", "ask with maxresults, or a prefix")
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
		}
		if !page.More {
			return nil
		}
		from = page.Next() + "\x00"
	}
}
