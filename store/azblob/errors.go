package azblob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/leasehold/leasehold"
)

// failure returns what an error of Azure means. What is not an answer may have happened. Errors of the
// driver may have the URL with its signature, so they are not shown.
func (s *Store) failure(err error) error {
	var known *leasehold.Error
	var answer *azcore.ResponseError
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("no answer from Azure in time: %w", context.Canceled)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer from Azure in time: %w", context.DeadlineExceeded)
	case errors.Is(err, syscall.ECONNREFUSED):
		return &leasehold.Error{Code: leasehold.Unavailable, Message: "Azure cannot be reached: connection refused"}
	case !errors.As(err, &answer):
		return &leasehold.Error{Code: leasehold.Undecided, Message: "Azure did not answer: " + reason(err)}
	}
	switch answer.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
			"Azure denied it (%s): the key must be right and this machine's clock no more than 15 minutes off, or the "+
				"signature or role must allow reading, creating, writing, deleting and listing blobs of the container",
			answer.ErrorCode)}
	case http.StatusNotFound: // a missing blob is no error
		return &leasehold.Error{Code: leasehold.Unavailable,
			Message: fmt.Sprintf("Azure answered %s: the container must exist; open the store again to create it",
				answer.ErrorCode)}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return &leasehold.Error{Code: leasehold.Undecided, Message: "Azure has too many requests: try again"}
	}
	return &leasehold.Error{Code: leasehold.Undecided,
		Message: fmt.Sprintf("Azure answered %d %s", answer.StatusCode, answer.ErrorCode)}
}

// reason returns what went wrong on the network, without an address.
func reason(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return "the connection failed"
}

func status(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

// missing reports whether there is no such blob.
func missing(err error) bool {
	return status(err) == http.StatusNotFound && !bloberror.HasCode(err, bloberror.ContainerNotFound)
}

// changed reports whether the state was not the expected one: somebody wrote, or has the lease.
func changed(err error) bool {
	return status(err) == http.StatusPreconditionFailed || status(err) == http.StatusConflict
}

func lost(id, resource string, e *leasehold.Ending) error {
	message := fmt.Sprintf("lease %s on %s has ended: acquire it again under another id", id, resource)
	switch e.How {
	case leasehold.ByBreak:
		message = fmt.Sprintf("lease %s on %s was broken by %s: %s", id, resource, e.By, e.Reason)
	case leasehold.Released:
		message = fmt.Sprintf("lease %s on %s was released: acquire it again under another id", id, resource)
	case leasehold.ByTTL:
		message = fmt.Sprintf("lease %s on %s has expired: acquire it again under another id", id, resource)
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: message}
}
