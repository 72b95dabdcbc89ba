package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/redis/rueidis"
)

// refusals are the errors with which Redis refuses a script before it runs, by their first word.
var refusals = []struct {
	prefix string
	code   leasehold.Code
	hint   string
}{
	{"OOM", leasehold.Limited, "Redis is out of memory: raise maxmemory, or free memory; renewals still work"},
	{"NOPERM", leasehold.Denied, "the user of Redis lacks a permission: see docs/stores/redis.md for the ACL it needs"},
	{"NOAUTH", leasehold.Denied, "Redis wants a password: put it into the URL, as in redis://user:password@host"},
	{"WRONGPASS", leasehold.Denied, "Redis does not accept this user and password"},
	{"READONLY", leasehold.Unavailable, "this Redis is a replica: it was not, or is no longer, the primary"},
	{"LOADING", leasehold.Unavailable, "Redis is loading its data"},
	{"MASTERDOWN", leasehold.Unavailable, "this Redis is a replica that has lost its primary"},
	{"NOREPLICAS", leasehold.Unavailable, "Redis has too few replicas to accept writes (min-replicas-to-write)"},
	{"CLUSTERDOWN", leasehold.Unavailable, "the Redis Cluster is down"},
	{"TRYAGAIN", leasehold.Unavailable, "the Redis Cluster is moving these keys"},
	{"MOVED", leasehold.Unavailable, "this Redis is part of a Cluster: use redis+cluster:// in the URL"},
	{"ASK", leasehold.Unavailable, "the Redis Cluster is moving these keys"},
	{"BUSY", leasehold.Unavailable, "Redis is busy with another script"},
	{"MISCONF", leasehold.Unavailable, "Redis accepts no writes because it cannot save its data"},
}

// failure turns an error of the driver into one of ours. What is not a refusal may have happened.
func failure(err error) error {
	var ours *leasehold.Error
	if errors.As(err, &ours) {
		return err
	}
	if e, ok := rueidis.IsRedisErr(err); ok {
		return refusal(e.Error())
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, rueidis.ErrNoSlot), errors.Is(err, rueidis.ErrNoAddr):
		return &leasehold.Error{Code: leasehold.Unavailable, Message: fmt.Sprintf("Redis cannot be reached: %v", err)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return undecided("Redis did not answer: %v", err)
}

func refusal(message string) error {
	for _, r := range refusals {
		if strings.HasPrefix(message, r.prefix) {
			return &leasehold.Error{Code: r.code, Message: fmt.Sprintf("%s (%s)", r.hint, message)}
		}
	}
	return undecided("Redis failed: %s", message)
}
