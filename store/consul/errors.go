package consul

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold"
)

// failure returns what an error of Consul means. What is not an answer of Consul may have happened.
func (s *Store) failure(err error) error {
	var known *leasehold.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("consul did not answer in time: %w", err)
	}
	code, message := leasehold.Undecided, "consul did not answer: "+err.Error()
	var status api.StatusError
	switch {
	case errors.As(err, &status) && status.Code == http.StatusForbidden:
		code, message = leasehold.Denied, s.denied(status.Body)
	case errors.Is(err, syscall.ECONNREFUSED):
		code, message = leasehold.Unavailable, "consul cannot be reached: "+err.Error()
	case strings.Contains(err.Error(), "too many concurrent connections"): // refused before it is read
		code, message = leasehold.Unavailable,
			"consul refused the connection: raise limits.http_max_conns_per_client in its configuration"
	case errors.As(err, &status) && strings.Contains(status.Body, "No cluster leader"):
		code, message = leasehold.Unavailable, "consul has no leader: try again"
	case errors.As(err, &status) && status.Code == http.StatusTooManyRequests:
		code, message = leasehold.Unavailable, "consul has too many requests: try again"
	case errors.As(err, &status) && status.Code == http.StatusRequestEntityTooLarge:
		code, message = leasehold.Invalid, "the request is larger than Consul allows: use a smaller value"
	}
	return &leasehold.Error{Code: code, Message: message}
}

func (s *Store) denied(body string) string {
	if strings.Contains(body, "ACL not found") {
		return "consul does not know the ACL token: put a valid one in CONSUL_HTTP_TOKEN"
	}
	return fmt.Sprintf(`consul denied it: the policy of the ACL token needs key_prefix "%s" { policy = "write" } `+
		`and session_prefix "" { policy = "write" }`, s.keys.root)
}

func lost(id, resource string, m *mark) error {
	message := fmt.Sprintf("lease %s on %s has expired: acquire it again under another id", id, resource)
	switch e := m.ending(id); e.How {
	case leasehold.ByBreak:
		message = fmt.Sprintf("lease %s on %s was broken by %s: %s", id, resource, e.By, e.Reason)
	case leasehold.Released:
		message = fmt.Sprintf("lease %s on %s was released: acquire it again under another id", id, resource)
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: message}
}
