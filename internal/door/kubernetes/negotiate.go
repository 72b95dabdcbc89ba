package kubernetes

import (
	"mime"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// The content types of requests and answers.
const (
	jsonType = "application/json"
	yamlType = "application/yaml"
)

const knownTypes = jsonType + ", " + yamlType + ", " + object.Protobuf

// A form is how an answer is written.
type form struct {
	protobuf bool
	as       string // what it is instead of the object: a table, the metadata alone, or a list of all groups
}

// What an answer can be instead of the object itself.
const (
	asTable      = "Table"
	asMeta       = "PartialObjectMetadata"
	asMetaList   = "PartialObjectMetadataList"
	asAggregated = "APIGroupDiscoveryList"
)

// negotiate finds the first form that a client takes and that there is.
func negotiate(accept []string, on int) (form, error) {
	if len(accept) == 0 {
		return form{}, nil
	}
	for _, line := range accept {
		for part := range strings.SplitSeq(line, ",") {
			if f, ok := formOf(strings.TrimSpace(part), on); ok {
				return f, nil
			}
		}
	}
	return form{}, &apiError{Code: http.StatusNotAcceptable, Reason: "NotAcceptable",
		Message: "only the following media types are accepted: " + jsonType + ", " + object.Protobuf}
}

// formOf reads one media type, and reports whether an answer can have it.
func formOf(text string, on int) (form, bool) {
	switch text {
	case jsonType, "*/*", "application/*", "":
		return form{}, true
	case object.Protobuf:
		return form{protobuf: true}, hasProtobuf(on)
	}
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || params["q"] == "0" {
		return form{}, false
	}
	f := form{protobuf: kind == object.Protobuf, as: params["as"]}
	if kind != jsonType && kind != "*/*" && kind != "application/*" && !(f.protobuf && hasProtobuf(on)) {
		return form{}, false
	}
	group, version := params["g"], params["v"]
	switch f.as {
	case "":
		return f, true
	case asTable:
		return f, !f.protobuf && isOfLeases(on) && group == "meta.k8s.io" && version == "v1"
	case asMeta, asMetaList:
		return f, isOfLeases(on) && group == "meta.k8s.io" && version == "v1"
	case asAggregated:
		return f, (on == ofCore || on == ofGroups) && group == "apidiscovery.k8s.io" && version == "v2"
	}
	return form{}, false
}

// isOfLeases reports whether a path names Leases.
func isOfLeases(on int) bool { return on == ofAll || on == ofSpace || on == ofLease }

// hasProtobuf reports whether there are answers in protobuf. Clients that prefer it take JSON too.
func hasProtobuf(on int) bool { return isOfLeases(on) }

// contentType is that of an answer.
func (f form) contentType() []string {
	switch {
	case f.protobuf:
		return protobufHeader
	case f.as == asAggregated:
		return aggregatedHeader
	}
	return jsonHeader
}

// The values of headers that never change.
var (
	jsonHeader       = []string{jsonType}
	protobufHeader   = []string{object.Protobuf}
	aggregatedHeader = []string{jsonType + ";g=apidiscovery.k8s.io;v=v2;as=" + asAggregated}
	protobufStream   = []string{object.Protobuf + ";stream=watch"}
	noCache          = []string{"no-cache, private"}
	noSniff          = []string{"nosniff"}
)

// An answer is something that can be written in either form.
type answer interface {
	kind() (apiVersion, kind string)
	Marshal() []byte // without an envelope
	JSON() ([]byte, error)
}

// bytesOf writes an answer.
func (f form) bytesOf(a answer) []byte {
	if f.protobuf {
		apiVersion, kind := a.kind()
		return object.Envelope(apiVersion, kind, a.Marshal())
	}
	text, _ := a.JSON() // none of them can fail: they are texts, numbers and times
	return text
}

// send writes an answer.
func (c *call) send(status int, a answer) {
	if _, ok := a.(documented); ok {
		c.form.protobuf = false
	}
	text := c.form.bytesOf(a)
	if !c.form.protobuf {
		text = append(text, '\n')
	}
	c.sendBytes(status, c.form.contentType(), text)
}

// sendBytes writes an answer that is encoded. A slow client has as long as everywhere.
func (c *call) sendBytes(status int, contentType []string, text []byte) {
	door.WriteWithin(c.w, door.WriteTime)
	h := c.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = contentType, noCache, noSniff
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		// Whether it arrives is not for us to know; the caller reads again.
		_, _ = c.w.Write(text)
	}
}

// A leaseAnswer is one object.
type leaseAnswer struct{ *object.Lease }

func (leaseAnswer) kind() (apiVersion, kind string) { return object.APIVersion, object.Kind }

// sendLease answers with one object, in whichever shape is wanted.
func (c *call) sendLease(status int, l *object.Lease) {
	c.send(status, c.shaped(l))
}

// shaped returns an object in the shape that is wanted.
func (c *call) shaped(l *object.Lease) answer {
	switch c.form.as {
	case asTable:
		t := newTable(c.query.Get("includeObject"), l.Meta.ResourceVersion)
		t.add(l)
		return t
	case asMeta, asMetaList:
		return metaAnswer{l}
	}
	return leaseAnswer{l}
}
