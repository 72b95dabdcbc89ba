package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold"
)

// failure returns what an error of ZooKeeper means. What is not an answer may have happened.
func (s *Store) failure(err error) error {
	var known *leasehold.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("ZooKeeper did not answer in time: %w", err)
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, zk.ErrAuthFailed), errors.Is(err, zk.ErrInvalidACL):
		return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(
			"ZooKeeper denied it: the ACL of %s and what is below it must give this user cdrw "+
				"(the user is in the address, as in zookeeper://user:password@host)", s.paths.root)}
	}
	return &leasehold.Error{Code: leasehold.Undecided, Message: "ZooKeeper did not answer: " + err.Error()}
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

// foreign is the error for a lease of another process.
func foreign(id, resource string) error {
	return &leasehold.Error{Code: leasehold.Refused, Message: fmt.Sprintf(
		"lease %s on %s is bound to the ZooKeeper session of another process: only that one can renew it",
		id, resource)}
}
