package kernel_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/internal/core/access"
)

// quotaFields are the parts of a quota that are counted in the log.
func quotaFields(q *access.Quota) []struct {
	name string
	most *int64
} {
	return []struct {
		name string
		most *int64
	}{{"leases", &q.Leases}, {"sessions", &q.Sessions}, {"waiters", &q.Waiters}, {"records", &q.Records}, {"bytes", &q.Bytes}}
}

// quotaOf is the quota of a principal, or of a namespace: "/green".
func quotaOf(who string) *access.Quota {
	if namespace, is := strings.CutPrefix(who, "/"); is {
		return &access.Quota{Namespace: namespace}
	}
	return &access.Quota{Principal: who}
}

// quota reads WHO:1-leases,2-waiters.
func (p *phrase) quota(parts []string) *access.Quota {
	q := quotaOf(parts[0])
	for _, part := range listOf(parts[1]) {
		text, name, _ := strings.Cut(part, "-")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.wrong("%s is no number", text)
		}
		known := false
		for _, f := range quotaFields(q) {
			if f.name == name {
				*f.most, known = n, true
			}
		}
		if !known {
			p.wrong("there is no quota of %s", name)
		}
	}
	return q
}

func writeQuota(q *access.Quota) string {
	who := q.Principal
	if q.Namespace != "" {
		who = "/" + q.Namespace
	}
	var parts []string
	for _, f := range quotaFields(q) {
		if *f.most != 0 {
			parts = append(parts, fmt.Sprintf("%d-%s", *f.most, f.name))
		}
	}
	return fmt.Sprintf("+quota:%s:%s", who, strings.Join(parts, ","))
}
