package kubernetes

import (
	"crypto/sha256"
	_ "embed" // openapi.json
	"encoding/hex"
	"net/http"

	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// openapi describes the group as far as kubectl looks: the fields for explain, and that a patch takes fieldValidation,
// without which kubectl would want to validate objects itself.
//
//go:embed openapi.json
var openapi string

// specPath is the path of the page.
const specPath = "apis/" + object.APIVersion

// spec is the list of pages. The name of a page changes with what is in it: clients may keep it for ever.
var spec = func() document {
	sum := sha256.Sum256([]byte(openapi))
	return documentOf(texts{"paths": texts{specPath: texts{
		"serverRelativeURL": "/openapi/v3/" + specPath + "?hash=" + hex.EncodeToString(sum[:])}}})
}()

// describeAPI answers with the list of pages, or with the one page that there is.
func (c *call) describeAPI() error {
	d := spec
	if c.on == ofPage {
		d = document(openapi)
	}
	c.send(http.StatusOK, d)
	return nil
}
