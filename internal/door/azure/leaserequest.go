package azure

import (
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/internal/azureblob"
)

// A leaseRequest is what is asked of a lease.
type leaseRequest struct {
	action   string
	id       string
	proposed string
	seconds  int
	period   int  // noPeriod: what remains
	ours     bool // the caller proposed no id
}

const noPeriod = -1

// readLease reads and checks the whole request before the lease is read: what is wrong with a request does not
// depend on who holds what.
func (c *call) readLease() (q leaseRequest, err error) {
	q = leaseRequest{action: strings.ToLower(c.r.Header.Get("X-Ms-Lease-Action")), period: noPeriod}
	if q.id, err = c.leaseHeader(); err != nil {
		return q, err
	}
	if q.proposed, err = c.guidHeader("X-Ms-Proposed-Lease-Id"); err != nil {
		return q, err
	}
	switch q.action {
	case "":
		return q, missingHeader("x-ms-lease-action")
	case "acquire":
		if q.proposed == "" {
			// One for all attempts, so that what an earlier one got is recognized.
			q.proposed, q.ours = azureblob.NewGUID(), true
		}
		q.seconds, err = c.leaseNumber("X-Ms-Lease-Duration", 15, true)
		return q, err
	case "break":
		if c.r.Header.Get("X-Ms-Lease-Break-Period") != "" {
			q.period, err = c.leaseNumber("X-Ms-Lease-Break-Period", 0, false)
		}
		return q, err
	case "renew", "release":
	case "change":
		if q.proposed == "" {
			return q, missingHeader("x-ms-proposed-lease-id")
		}
	default:
		return q, badHeader("x-ms-lease-action", q.action)
	}
	if q.id == "" {
		return q, missingHeader("x-ms-lease-id")
	}
	return q, nil
}

// leaseNumber reads a number of seconds, up to Azure's limit of 60; -1 is "for ever" where allowed.
func (c *call) leaseNumber(name string, least int, endless bool) (int, error) {
	value := c.r.Header.Get(name)
	if value == "" {
		return 0, missingHeader(strings.ToLower(name))
	}
	n, err := strconv.Atoi(value)
	if err != nil || (n < least || n > 60) && !(endless && n == infinite) {
		return 0, badHeader(strings.ToLower(name), value)
	}
	return n, nil
}

// leaseHeader reads the id of the lease under which a request is made; empty if it has none.
func (c *call) leaseHeader() (string, error) { return c.guidHeader("X-Ms-Lease-Id") }

func (c *call) guidHeader(name string) (string, error) {
	value := c.r.Header.Get(name)
	if value == "" {
		return "", nil
	}
	guid, ok := azureblob.ParseGUID(value)
	if !ok {
		return "", badHeader(strings.ToLower(name), value)
	}
	return guid, nil
}
