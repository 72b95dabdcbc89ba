package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// maxBody is how many bytes a body may have: a Lease has some hundreds, and can have 64 KiB.
const maxBody = 256 << 10

// body reads what was sent, and what it is, from somebody who may write what the path names.
func (c *call) body() (text []byte, contentType string, err error) {
	if err := c.mayWrite(); err != nil {
		return nil, "", err
	}
	var read bytes.Buffer
	if n := c.r.ContentLength; n > 0 && n <= maxBody {
		read.Grow(int(n) + bytes.MinRead)
	}
	if _, err := io.Copy(&read, io.LimitReader(c.r.Body, maxBody+1)); err != nil {
		return nil, "", badRequest("the body cannot be read: %v", err)
	}
	if read.Len() > maxBody {
		return nil, "", tooLarge(maxBody)
	}
	contentType = c.r.Header.Get("Content-Type")
	if strings.Contains(contentType, ";") {
		if contentType, _, err = mime.ParseMediaType(contentType); err != nil {
			return nil, "", unsupported()
		}
	}
	return read.Bytes(), contentType, nil
}

// mayWrite refuses somebody who may write nothing of what the path names. Events are taken from everybody: nothing is
// made of them.
func (c *call) mayWrite() error {
	if c.on == ofEvents {
		return nil
	}
	return c.door.backend.MayWrite(c.signed(), c.door.config.Namespace, c.path(), c.on != ofLease)
}

// skipBody takes the body of a request that has no use for one, before its answer begins. While some of it is missing,
// net/http does not notice that the client leaves, or waits for it before the head of the answer, beyond all deadlines
// of a request that stays.
func (c *call) skipBody() error {
	n, err := io.Copy(io.Discard, io.LimitReader(c.r.Body, maxBody+1))
	switch {
	case err != nil:
		return badRequest("the body cannot be read: %v", err)
	case n > maxBody:
		return tooLarge(maxBody)
	}
	return nil
}

// tooLarge is the error of a body, or of an object, that has too many bytes.
func tooLarge(limit int) error {
	return &apiError{Code: http.StatusRequestEntityTooLarge, Reason: "RequestEntityTooLarge",
		Message: fmt.Sprintf("Request entity too large: limit is %d", limit)}
}

// unsupported is the error of a body in a form that nobody here reads. client-go has no other to try: JSON and
// protobuf have to be read wherever it sends them.
func unsupported() error {
	return &apiError{Code: http.StatusUnsupportedMediaType, Reason: "UnsupportedMediaType",
		Message: "the body of the request was in an unknown format - accepted media types include: " + knownTypes}
}

// sentLease reads the object that was sent, and checks that it is the one that the path names.
func (c *call) sentLease() (*object.Lease, error) {
	text, contentType, err := c.body()
	if err != nil {
		return nil, err
	}
	var l *object.Lease
	switch contentType {
	case object.Protobuf:
		l, err = fromProtobuf(text)
	case yamlType:
		l, err = c.fromYAML(text)
	case jsonType, "":
		l, err = c.fromJSON(text)
	default:
		return nil, unsupported()
	}
	if err != nil {
		return nil, err
	}
	return l, c.checkNames(l)
}

// unreadable is the error of a body that is no object.
func unreadable(err error) error {
	return badRequest("%s in version %q cannot be handled as a %s: %v", object.Kind, "v1", object.Kind, err)
}

// fromProtobuf reads an object with its envelope. Fields that nobody knows are dropped, as in Kubernetes.
func fromProtobuf(text []byte) (*object.Lease, error) {
	apiVersion, kind, message, err := object.Open(text)
	if err == nil && (kind != "" && kind != object.Kind || apiVersion != "" && apiVersion != object.APIVersion) {
		err = &object.KindError{APIVersion: apiVersion, Kind: kind}
	}
	l := &object.Lease{}
	if err == nil {
		err = l.Unmarshal(message)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return l, nil
}

// fromJSON reads an object in JSON.
func (c *call) fromJSON(text []byte) (*object.Lease, error) {
	tree, twice, err := object.ParseTree(text)
	if err != nil {
		return nil, unreadable(err)
	}
	return c.fromTree(tree, twice)
}

// fromYAML reads an object in YAML.
func (c *call) fromYAML(text []byte) (*object.Lease, error) {
	tree, err := object.ParseYAML(text)
	if err != nil {
		return nil, unreadable(err)
	}
	return c.fromTree(tree, nil)
}

// fromTree reads an object, and tells of fields that it does not have, as strictly as the request asks for.
func (c *call) fromTree(tree object.Tree, twice []string) (*object.Lease, error) {
	l, unknown, err := object.FromTree(tree)
	if err != nil {
		return nil, unreadable(err)
	}
	var found []string
	for _, path := range unknown {
		found = append(found, fmt.Sprintf("unknown field %q", path))
	}
	for _, path := range twice {
		found = append(found, fmt.Sprintf("duplicate field %q", path))
	}
	switch how := c.query.Get("fieldValidation"); {
	case how != "" && how != "Warn" && how != "Strict" && how != "Ignore":
		return nil, invalid(optionsKind(c.r.Method)+".meta.k8s.io", "", object.Cause{Reason: "FieldValueNotSupported",
			Field: "fieldValidation", Message: fmt.Sprintf(
				"Unsupported value: %q: supported values: \"Ignore\", \"Strict\", \"Warn\"", how)})
	case len(found) == 0 || how == "Ignore":
	case how == "Strict":
		return nil, unreadable(errors.New("strict decoding error: " + strings.Join(found, ", ")))
	default:
		c.warn(found)
	}
	return l, nil
}

// maxWarnings is how many warnings an answer has.
const maxWarnings = 16

// warn tells the client of something that it can do without. kubectl shows it.
func (c *call) warn(texts []string) {
	for _, text := range texts[:min(len(texts), maxWarnings)] {
		c.w.Header().Add("Warning", "299 - "+strconv.Quote(text))
	}
}

// optionsKind is what Kubernetes calls the parameters of a method.
func optionsKind(method string) string {
	switch method {
	case http.MethodPost:
		return "CreateOptions"
	case http.MethodPatch:
		return "PatchOptions"
	}
	return "UpdateOptions"
}

// checkNames refuses an object that says that it is another than the path does.
func (c *call) checkNames(l *object.Lease) error {
	switch m := &l.Meta; {
	case m.Namespace != "" && m.Namespace != c.space:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	case c.on == ofLease && m.Name != "" && m.Name != c.name:
		return badRequest("the name of the object (%s) does not match the name on the URL (%s)", m.Name, c.name)
	}
	return nil
}

// dryRun reports whether a request only wants to know what would happen.
func (c *call) dryRun() bool { return c.query.Get("dryRun") == "All" }
