package azure

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// maxListed is the most that one answer lists, as in Azure. What asks for no number gets
// as many: azurerm looks at the first page alone.
const maxListed = 5000

// A listing is what is asked of a list.
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

// head writes what was asked, as lists repeat it.
func (q *listing) head(c *call, container string) string {
	var b strings.Builder
	b.WriteString(xmlHead + `<EnumerationResults ServiceEndpoint="` + attribute(c.serviceURL()) + `"`)
	if container != "" {
		b.WriteString(` ContainerName="` + attribute(container) + `"`)
	}
	b.WriteString(">")
	for _, f := range []struct{ name, value string }{{"Prefix", q.prefix}, {"Marker", c.query.Get("marker")}} {
		if f.value != "" {
			element(&b, f.name, f.value)
		}
	}
	if c.query.Get("maxresults") != "" {
		element(&b, "MaxResults", fmt.Sprint(q.most))
	}
	if q.delimiter != "" {
		element(&b, "Delimiter", q.delimiter)
	}
	return b.String()
}

func attribute(s string) string {
	var b strings.Builder
	element(&b, "x", s)
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), "<x>"), "</x>")
}

// serviceURL is the account's address, as the client wrote it.
func (c *call) serviceURL() string {
	if c.host {
		return c.base() + "/"
	}
	return c.base() + "/" + c.at.account + "/"
}

// What is asked to be included beside what there is. Nothing deleted and no older version
// is ever kept, so that to include those changes nothing.
var blobIncludes = []string{"metadata", "snapshots", "copy", "deleted", "versions", "deletedwithversions", "tags", "immutabilitypolicy", "legalhold", "permissions"}

// listBlobs lists the blobs of a container. The answer is written while it is read, since
// it may be large.
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
	w := &lister{call: c, q: q, root: c.at.within(rootBlobs)}
	w.from = max(w.root+q.prefix, w.root+q.marker)
	first, err := w.page()
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/xml")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	out := &patient{c}
	_, err = io.WriteString(out, q.head(c, c.at.container)+"<Blobs>"+first)
	for err == nil && !w.done {
		var text string
		if text, err = w.page(); err == nil {
			_, err = io.WriteString(out, text)
		}
	}
	if err != nil {
		return errCut
	}
	next := ""
	if w.next != "" {
		next = nextMarker(w.next)
	}
	_, _ = io.WriteString(out, "</Blobs><NextMarker>"+next+"</NextMarker></EnumerationResults>")
	return nil
}

// A lister goes over the blobs of a container.
type lister struct {
	*call
	q      listing
	root   string
	from   string // the path to go on with
	listed int
	next   string // the name to go on with in another answer; empty: that was all
	done   bool
}

// A found blob is one as it was read, and when.
type found struct {
	name  string
	value string
	lease lease
}

// page lists some more.
func (w *lister) page() (string, error) {
	var list []found
	var page core.RecordPage
	err := w.read(func(v core.View) {
		page, _ = v.Records(w.door.config.Namespace, core.RecordQuery{From: w.from, To: core.PrefixEnd(w.root + w.q.prefix)})
		for _, r := range page.Records {
			name := strings.TrimPrefix(r.Path, w.root)
			var p properties
			if json.Unmarshal([]byte(r.Value), &p) != nil {
				continue
			}
			list = append(list, found{name, r.Value, w.lookLease(v, w.at.within(rootBytes)+name, &p)})
		}
	})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range list {
		if done, err := w.add(&b, &list[i]); done || err != nil {
			return b.String(), err
		}
	}
	w.done = !page.More
	if page.More && w.from <= page.Records[len(page.Records)-1].Path {
		w.from = page.Records[len(page.Records)-1].Path + "\x00"
	}
	return b.String(), nil
}

// add lists one blob, or the group that it belongs to. It tells whether there is no room
// for more.
func (w *lister) add(b *strings.Builder, f *found) (bool, error) {
	if w.root+f.name < w.from {
		return false, nil // of a group that is listed already
	}
	if w.listed >= w.q.most {
		w.next, w.done = f.name, true
		return true, nil
	}
	w.listed++
	if rest := strings.TrimPrefix(f.name, w.q.prefix); w.q.delimiter != "" {
		if before, _, grouped := strings.Cut(rest, w.q.delimiter); grouped {
			group := w.q.prefix + before + w.q.delimiter
			b.WriteString("<BlobPrefix>")
			element(b, "Name", group)
			b.WriteString("</BlobPrefix>")
			w.from = core.PrefixEnd(w.root + group)
			return false, nil
		}
	}
	if w.q.includes("snapshots") {
		if err := w.addSnapshots(b, f.name); err != nil {
			return false, err
		}
	}
	var p properties
	if err := json.Unmarshal([]byte(f.value), &p); err != nil {
		return false, err
	}
	w.write(b, f.name, "", &p, &f.lease)
	return false, nil
}

func (w *lister) addSnapshots(b *strings.Builder, name string) error {
	at := w.at
	at.blob = name
	prefix := at.part(rootSnapshots)
	return w.eachRecord(prefix, func(r *leasehold.Record) {
		var p properties
		if json.Unmarshal([]byte(r.Value), &p) == nil {
			w.listed++
			w.write(b, name, strings.TrimPrefix(r.Path, prefix), &p, nil)
		}
	})
}

func (w *lister) write(b *strings.Builder, name, snapshot string, p *properties, l *lease) {
	b.WriteString("<Blob>")
	element(b, "Name", name)
	if snapshot != "" {
		element(b, "Snapshot", snapshot)
	}
	b.WriteString("<Properties>")
	for _, f := range []struct{ name, value string }{
		{"Creation-Time", timeOf(p.Created)}, {"Last-Modified", timeOf(p.Modified)}, {"Etag", strings.Trim(p.ETag, `"`)},
		{"Content-Length", fmt.Sprint(p.Size)}, {"Content-Type", p.shownType()}, {"Content-Encoding", p.Encoding}, {"Content-Language", p.Language},
		{"Content-MD5", p.MD5}, {"Cache-Control", p.Cache}, {"Content-Disposition", p.Disposition}, {"BlobType", "BlockBlob"},
	} {
		element(b, f.name, f.value)
	}
	if l != nil {
		writeLease(b, l)
	}
	if p.Copy != nil && w.q.includes("copy") {
		element(b, "CopyId", p.Copy.ID)
		element(b, "CopySource", p.Copy.Source)
		element(b, "CopyStatus", "success")
		element(b, "CopyProgress", progress(p))
		element(b, "CopyCompletionTime", timeOf(p.Copy.At))
	}
	element(b, "ServerEncrypted", "false")
	b.WriteString("</Properties>")
	if w.q.includes("metadata") {
		writeMetadataXML(b, p.Metadata)
	}
	b.WriteString("</Blob>")
}

func writeLease(b *strings.Builder, l *lease) {
	element(b, "LeaseStatus", l.status())
	element(b, "LeaseState", l.state.String())
	if l.state == leasehold.Leased {
		element(b, "LeaseDuration", l.kind())
	}
}

func writeMetadataXML(b *strings.Builder, m map[string]string) {
	b.WriteString("<Metadata>")
	for _, name := range metadataNames(m) {
		element(b, name, m[name])
	}
	b.WriteString("</Metadata>")
}

// listContainers lists the containers of an account.
func (c *call) listContainers() error {
	q, err := c.readListing("metadata", "deleted", "system")
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(q.head(c, "") + "<Containers>")
	next := ""
	root := rootBytes + c.at.account + "/"
	for from, n := max(root+q.prefix, root+q.marker), 0; from != ""; n++ {
		name, i, after, err := c.nextContainer(from, root+q.prefix)
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		if n >= q.most {
			next = nextMarker(name)
			break
		}
		writeContainer(&b, name, &i, q.includes("metadata"))
		from = after
	}
	b.WriteString("</Containers><NextMarker>" + next + "</NextMarker></EnumerationResults>")
	return c.answerXML(b.String())
}

// nextContainer finds the next container from a path on. Between the records of
// containers are those of their blobs, which are passed over as a whole.
func (c *call) nextContainer(from, prefix string) (name string, i item, after string, err error) {
	root := rootBytes + c.at.account + "/"
	err = c.read(func(v core.View) {
		for {
			page, _ := v.Records(c.door.config.Namespace, core.RecordQuery{From: from, To: core.PrefixEnd(prefix), Most: 1, KeysOnly: true})
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
			at := &call{door: c.door, at: target{account: c.at.account, container: container}}
			if i = at.lookContainer(v); i.found {
				name, after = container, from
				return
			}
		}
	})
	return name, i, after, err
}

func writeContainer(b *strings.Builder, name string, i *item, metadata bool) {
	b.WriteString("<Container>")
	element(b, "Name", name)
	b.WriteString("<Properties>")
	element(b, "Last-Modified", timeOf(i.Modified))
	element(b, "Etag", i.ETag)
	writeLease(b, &i.lease)
	element(b, "HasImmutabilityPolicy", "false")
	element(b, "HasLegalHold", "false")
	b.WriteString("</Properties>")
	if metadata {
		writeMetadataXML(b, i.Metadata)
	}
	b.WriteString("</Container>")
}
