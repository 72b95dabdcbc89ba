package azure

import "net/http"

// What a request is about.
const (
	ofAccount = iota
	ofContainer
	ofBlob
)

// An operation is one thing that can be asked. kind, method, restype and comp find it.
type operation struct {
	name    string
	kind    int
	method  string // HEAD goes with GET
	restype string
	comp    string
	needs   string // permissions of a SAS, one of which it must have
	noted   string // as the journal calls it, in the words of all doors; a lease's says its action
	serve   func(*call) error
}

// operations is the whole door, except for what a client asks in order to find it.
var operations = []operation{
	{"list-containers", ofAccount, "GET", "", "list", "l", "records", (*call).listContainers},
	{"get-account", ofAccount, "GET", "account", "properties", "rwdlacup", "record", (*call).getAccount},
	{"get-service", ofAccount, "GET", "service", "properties", "r", "record", (*call).getService},

	{"create-container", ofContainer, "PUT", "container", "", "cw", "put-record", (*call).createContainer},
	{"get-container", ofContainer, "GET", "container", "", "rl", "record", (*call).getContainer},
	{"delete-container", ofContainer, "DELETE", "container", "", "d", "delete-record", (*call).deleteContainer},
	{"get-container", ofContainer, "GET", "container", "metadata", "rl", "record", (*call).getContainer},
	{"set-container-metadata", ofContainer, "PUT", "container", "metadata", "w", "put-record", (*call).setContainer},
	{"get-container-acl", ofContainer, "GET", "container", "acl", "-", "record", (*call).getContainerACL},
	{"list-blobs", ofContainer, "GET", "container", "list", "l", "records", (*call).listBlobs},
	{"lease-container", ofContainer, "PUT", "container", "lease", "w", "acquire", (*call).leaseContainer},

	{"get-blob", ofBlob, "GET", "", "", "r", "record", (*call).getBlob},
	{"put-blob", ofBlob, "PUT", "", "", "wc", "put-record", (*call).putBlob},
	{"delete-blob", ofBlob, "DELETE", "", "", "d", "delete-record", (*call).deleteBlob},
	{"get-blob-metadata", ofBlob, "GET", "", "metadata", "r", "record", (*call).getBlobMetadata},
	{"set-blob-metadata", ofBlob, "PUT", "", "metadata", "w", "put-record", (*call).setBlobMetadata},
	{"set-blob-properties", ofBlob, "PUT", "", "properties", "w", "put-record", (*call).setBlobProperties},
	{"snapshot-blob", ofBlob, "PUT", "", "snapshot", "wc", "put-record", (*call).snapshotBlob},
	{"put-block", ofBlob, "PUT", "", "block", "wc", "put-record", (*call).putBlock},
	{"put-block-list", ofBlob, "PUT", "", "blocklist", "wc", "put-record", (*call).putBlockList},
	{"get-block-list", ofBlob, "GET", "", "blocklist", "r", "record", (*call).getBlockList},
	{"lease-blob", ofBlob, "PUT", "", "lease", "w", "acquire", (*call).leaseBlob},
	{"abort-copy", ofBlob, "PUT", "", "copy", "w", "put-record", (*call).abortCopy},
}

// findOperation finds what is asked of an account, a container or a blob.
func (c *call) findOperation(kind int) error {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	restype, comp := c.query.Get("restype"), c.query.Get("comp")
	known := false
	for i := range operations {
		o := &operations[i]
		if o.kind != kind || o.restype != restype || o.comp != comp {
			continue
		}
		if known = true; o.method == method {
			c.op = o
			return nil
		}
	}
	switch {
	case known || method != http.MethodGet && method != http.MethodPut && method != http.MethodDelete:
		return errUnsupportedVerb
	case comp != "":
		return errUnsupportedQuery.with("QueryParameterName", "comp").with("QueryParameterValue", comp)
	}
	return errInvalidURI
}
