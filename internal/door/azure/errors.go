package azure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

// A fault is an error in Azure's words.
type fault struct {
	status  int
	code    string // x-ms-error-code
	message string
	detail  []element // further elements of the body
	later   bool      // nothing happened: Retry-After goes with it
	cause   error     // of ours, for the log
}

func (f *fault) Error() string { return f.code + ": " + f.message }
func (f *fault) Unwrap() error { return f.cause }

func newFault(status int, code, message string) *fault {
	return &fault{status: status, code: code, message: message}
}

// with adds an element to the body.
func (f *fault) with(name, value string) *fault {
	told := *f
	told.detail = append(append([]element{}, f.detail...), newElement(name, brief(value)))
	return &told
}

// saying replaces the message, where there is more to say than Azure would.
func (f *fault) saying(format string, args ...any) *fault {
	told := *f
	told.message = fmt.Sprintf(format, args...)
	return &told
}

func brief(s string) string {
	const most = 2048
	if len(s) > most {
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "?")
}

// Azure's errors, in its words.
var (
	errBlobNotFound      = newFault(404, "BlobNotFound", "The specified blob does not exist.")
	errContainerNotFound = newFault(404, "ContainerNotFound", "The specified container does not exist.")
	errContainerExists   = newFault(409, "ContainerAlreadyExists", "The specified container already exists.")
	errContainerDeleting = newFault(409, "ContainerBeingDeleted",
		"The specified container is being deleted. Try operation later.")
	errBlobExists       = newFault(409, "BlobAlreadyExists", "The specified blob already exists.")
	errResourceNotFound = newFault(404, "ResourceNotFound", "The specified resource does not exist.")
	errSnapshotsPresent = newFault(409, "SnapshotsPresent",
		"This operation is not permitted while the blob has snapshots.")
	errInvalidName = newFault(400, "InvalidResourceName",
		"The specified resource name contains invalid characters.")
	errInvalidURI = newFault(400, "InvalidUri",
		"The requested URI does not represent any resource on the server.")
	errMisdirected = newFault(421, "InvalidUri", "The server does not answer to the host name of the request.")
	errCondition   = newFault(412, "ConditionNotMet",
		"The condition specified using HTTP conditional header(s) is not met.")
	errSourceCondition = newFault(412, "SourceConditionNotMet",
		"The source condition specified using HTTP conditional header(s) is not met.")
	errNotModified = newFault(304, "ConditionNotMet",
		"The condition specified using HTTP conditional header(s) is not met.")
	errInvalidRange = newFault(416, "InvalidRange",
		"The range specified is invalid for the current size of the resource.")
	errMD5Mismatch = newFault(400, "Md5Mismatch",
		"The MD5 value specified in the request did not match with the MD5 value calculated by the server.")
	errInvalidMD5 = newFault(400, "InvalidMd5",
		"The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded.")
	errBodyTooLarge = newFault(413, "RequestBodyTooLarge",
		"The request body is too large and exceeds the maximum permissible limit.")
	errIncompleteBody   = newFault(400, "IncompleteBody", "The request body ended before all of it had come.")
	errInvalidXML       = newFault(400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
	errInvalidBlockList = newFault(400, "InvalidBlockList", "The specified block list is invalid.")
	errInvalidBlockID   = newFault(400, "InvalidBlockId",
		"The specified block ID is invalid. The block ID must be Base64-encoded.")
	errBlobOrBlock   = newFault(400, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
	errTooManyBlocks = newFault(409, "BlockCountExceedsLimit",
		"The uncommitted block count cannot exceed the maximum limit of 10,000 blocks.")
	errBlockListTooLong = newFault(400, "BlockListTooLong", "The block list may not contain more than 10,000 blocks.")
	errMetadataTooLarge = newFault(400, "MetadataTooLarge",
		"The size of the specified metadata exceeds the maximum size permitted.")
	errInvalidMetadata = newFault(400, "InvalidMetadata",
		"The metadata specified is invalid. It has characters that are not permitted.")
	errBlobType         = newFault(400, "BlobTypeNotSupported", "Only block blobs are supported.")
	errUnsupportedVerb  = newFault(405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
	errUnsupportedQuery = newFault(400, "UnsupportedQueryParameter",
		"One of the query parameters specified in the request URI is not supported.")
	errInvalidQuery = newFault(400, "InvalidQueryParameterValue",
		"Value for one of the query parameters specified in the request URI is invalid.")
	errOutOfRangeQuery = newFault(400, "OutOfRangeQueryParameterValue",
		"One of the query parameters specified in the request URI is outside the permissible range.")
	errUnsupportedHeader = newFault(400, "UnsupportedHeader",
		"One of the HTTP headers specified in the request is not supported.")
	errInvalidHeader = newFault(400, "InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format.")
	errMissingHeader = newFault(400, "MissingRequiredHeader",
		"An HTTP header that's mandatory for this request is not specified.")
	errInvalidInput   = newFault(400, "InvalidInput", "One of the request inputs is not valid.")
	errNoPendingCopy  = newFault(409, "NoPendingCopyOperation", "There is currently no pending copy operation.")
	errCopySource     = newFault(404, "CannotVerifyCopySource", "The specified blob does not exist.")
	errCopyAccount    = newFault(400, "InvalidHeaderValue", "The copy source must be a blob of the same account.")
	errAuthentication = newFault(403, "AuthenticationFailed",
		"Server failed to authenticate the request. Make sure the value of Authorization header is formed "+
			"correctly including the signature.")
	errNoAuthentication = newFault(401, "NoAuthenticationInformation",
		"Server failed to authenticate the request. Please refer to the information in the www-authenticate header.")
	errInvalidAuth = newFault(401, "InvalidAuthenticationInfo",
		"Server failed to authenticate the request. Please refer to the information in the www-authenticate header.")
	errPermission = newFault(403, "AuthorizationPermissionMismatch",
		"This request is not authorized to perform this operation using this permission.")
	errResourceType = newFault(403, "AuthorizationResourceTypeMismatch",
		"This request is not authorized to perform this operation using this resource type.")
	errService = newFault(403, "AuthorizationServiceMismatch",
		"This request is not authorized to perform this operation using this service.")
	errProtocol = newFault(403, "AuthorizationProtocolMismatch",
		"This request is not authorized to perform this operation using this protocol.")
	errSourceIP = newFault(403, "AuthorizationSourceIPMismatch",
		"This request is not authorized to perform this operation using this source IP.")
	errAuthorization = newFault(403, "AuthorizationFailure",
		"This request is not authorized to perform this operation.")
	errBytesGone = newFault(409, "OperationNotAllowed",
		"The bytes of the blob are gone: they were deleted by other means than this protocol. Write the blob again.")
	errServerBusy = &fault{status: 503, code: "ServerBusy",
		message: "The server is currently unable to receive requests. Please retry your request.", later: true}
	errInternal = newFault(500, "InternalError",
		"The server encountered an internal error. Please retry the request.")
	errLeasePresent  = newFault(409, "LeaseAlreadyPresent", "There is already a lease present.")
	errLeaseMismatch = newFault(409, "LeaseIdMismatchWithLeaseOperation",
		"The lease ID specified did not match the lease ID for the blob.")
	errLeaseNone = newFault(409, "LeaseNotPresentWithLeaseOperation",
		"There is currently no lease on the blob.")
	errLeaseBreaking = newFault(409, "LeaseIsBreakingAndCannotBeAcquired",
		"The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.")
	errLeaseBreakingStays = newFault(409, "LeaseIsBreakingAndCannotBeChanged",
		"The lease ID matched, but the lease is currently in breaking state and cannot be changed.")
	errLeaseBroken = newFault(409, "LeaseIsBrokenAndCannotBeRenewed",
		"The lease ID matched, but the lease has been broken explicitly and cannot be renewed.")
	errLeaseIDMissing = newFault(412, "LeaseIdMissing",
		"There is currently a lease on the blob and no lease ID was specified in the request.")
	errLeaseLost = newFault(412, "LeaseLost",
		"A lease ID was specified, but the lease for the blob has expired.")
	errBlobMismatch = newFault(412, "LeaseIdMismatchWithBlobOperation",
		"The lease ID specified did not match the lease ID for the blob.")
	errBlobNoLease = newFault(412, "LeaseNotPresentWithBlobOperation",
		"There is currently no lease on the blob.")
	errContainerMismatch = newFault(412, "LeaseIdMismatchWithContainerOperation",
		"The lease ID specified did not match the lease ID for the container.")
	errContainerNoLease = newFault(412, "LeaseNotPresentWithContainerOperation",
		"There is currently no lease on the container.")
)

func missingHeader(name string) *fault { return errMissingHeader.with("HeaderName", name) }

func badHeader(name, value string) *fault {
	return errInvalidHeader.with("HeaderName", name).with("HeaderValue", value)
}

func badQuery(name, value string) *fault {
	return errInvalidQuery.with("QueryParameterName", name).with("QueryParameterValue", value)
}

// faultOf returns an error in Azure's words. It is the one place where our codes become
// Azure's; most faults are made by the door itself, which knows more than a code.
//
// Undecided is a 503 like Unavailable: clients of Azure send again after either, and every
// request of this door may be sent again.
func faultOf(err error) *fault {
	var told *fault
	if errors.As(err, &told) {
		return told
	}
	var e *leasehold.Error
	if !errors.As(err, &e) {
		return because(errInternal, err)
	}
	switch e.Code {
	case leasehold.Held:
		return because(errLeasePresent.saying("There is already a lease present: %s.", e.Message), err)
	case leasehold.Lost:
		return because(errLeaseLost, err)
	case leasehold.NotFound:
		return because(errResourceNotFound, err)
	case leasehold.Invalid:
		return because(errInvalidInput.saying("%s", e.Message), err)
	case leasehold.Denied:
		return because(errAuthorization, err)
	case leasehold.Limited:
		return because(errServerBusy.saying("%s", e.Message), err)
	case leasehold.Unavailable, leasehold.Undecided:
		return because(errServerBusy.saying("%s", e.Message), err)
	case leasehold.Refused:
		return because(newFault(409, "OperationNotAllowed", e.Message), err)
	}
	return because(errInternal, err)
}

func because(f *fault, err error) *fault {
	caused := *f
	caused.cause = err
	return &caused
}

// codeOf returns our code for a fault, by which requests are counted.
func codeOf(f *fault) leasehold.Code {
	var e *leasehold.Error
	switch {
	case errors.As(f.cause, &e):
		return e.Code
	case f.status == 401 || f.status == 403 || f.status == 421:
		return leasehold.Denied
	case f.status == 404 || f.code == errLeaseNone.code:
		return leasehold.NotFound
	case f.status == 409 && strings.HasPrefix(f.code, "Lease"):
		return leasehold.Held
	case f.code == errLeaseLost.code:
		return leasehold.Lost
	case f.status == 409 || f.status == 412 || f.status == 304:
		return leasehold.Refused
	case f.status == 413:
		return leasehold.Limited
	case f.status == 503:
		return leasehold.Unavailable
	case f.status >= 500:
		return leasehold.Undecided
	}
	return leasehold.Invalid
}

// fail answers with a fault. Its message is also the reason phrase: some clients throw the
// body away and show that.
func (c *call) fail(f *fault) {
	h := c.w.Header()
	part := h.Get("Content-Range") // says how large the blob is
	clear(h)
	if part != "" {
		h.Set("Content-Range", part)
	}
	c.usualHeaders()
	h["x-ms-error-code"] = []string{f.code}
	if f.later {
		h.Set("Retry-After", "1")
	}
	if c.door.backend.Stopping().Err() != nil {
		h.Set("Connection", "close")
		h.Set("Retry-After", "1")
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate",
			fmt.Sprintf(
				"Bearer authorization_uri=%s/login/common/oauth2/authorize resource_id=https://storage.azure.com",
				c.base()))
	}
	if c.r.Method == http.MethodHead || f.status == http.StatusNotModified {
		c.reason(f.status, f.message)
		c.w.WriteHeader(f.status)
		return
	}
	c.drainBody()
	body := faultBody(f, c.id)
	h.Set("Content-Type", "application/xml")
	h.Set("Content-Length", fmt.Sprint(len(body)))
	c.reason(f.status, f.message)
	c.w.WriteHeader(f.status)
	_, _ = c.w.Write(body)
}

// faultBody returns the document of a fault.
func faultBody(f *fault, id string) []byte {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")
	message := fmt.Sprintf("%s\nRequestId:%s\nTime:%s", f.message, id, now)
	body, _ := encodeXML(&errorDocument{Code: f.code, Message: message, Detail: f.detail}) // strings cannot fail
	return body
}
