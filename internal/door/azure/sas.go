package azure

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/azureblob"
)

// checkSAS checks a shared access signature: for an account, or for a container or blob.
func (c *call) checkSAS(query url.Values, at azureblob.Place, op *operation) error {
	given, err := base64.StdEncoding.DecodeString(query.Get("sig"))
	if err != nil || len(given) == 0 {
		return authFault("Signature is not well formed.")
	}
	version := query.Get("sv")
	if !versionForm.MatchString(version) || version < "2015-04-05" {
		return authFault("The version sv is missing or older than 2015-04-05.")
	}
	if query.Get("skoid") != "" {
		return authFault("Signatures of a user delegation key are not supported.")
	}
	ofAccount := query.Get("ss") != "" || query.Get("srt") != ""
	text := serviceText(query, at)
	if ofAccount {
		text = accountText(query, at.Account)
	}
	if !c.signed(text, given) {
		return authFault("Signature did not match. String to sign used was " + text)
	}
	if query.Get("si") != "" {
		return authFault("Stored access policies are not supported.")
	}
	if err := checkTimes(query.Get("st"), query.Get("se"), time.Now()); err != nil {
		return err
	}
	if protocol := query.Get("spr"); protocol != "" && protocol != "https" && protocol != "https,http" {
		return errProtocol
	}
	if !addressAllowed(query.Get("sip"), c.r.RemoteAddr) {
		return errSourceIP
	}
	if ofAccount {
		return checkAccountSAS(query, op, c.needs(op))
	}
	return checkServiceSAS(query, at, op, c.needs(op))
}

// needs returns the permissions of a SAS, one of which a request must have. A permission to
// delete also allows to break a lease that is in the way, and nothing else about leases.
func (c *call) needs(op *operation) string {
	if op.comp == "lease" && strings.EqualFold(c.r.Header.Get("X-Ms-Lease-Action"), "break") {
		return "wd"
	}
	return op.needs
}

// withSnapshots is the first version whose signatures say which snapshot they are for. One of
// an older version is for the blob as it is.
const withSnapshots = "2018-11-09"

// authFault returns the fault of a proof that does not hold, with the reason.
func authFault(detail string) *fault {
	return errAuthentication.with("AuthenticationErrorDetail", detail)
}

// serviceText returns what is signed for a container or a blob.
func serviceText(q url.Values, at azureblob.Place) string {
	resource := "/blob/" + at.Account + "/" + at.Container
	if kind := q.Get("sr"); kind == "b" || kind == "bs" {
		resource += "/" + at.Blob
	}
	version := q.Get("sv")
	fields := []string{q.Get("sp"), q.Get("st"), q.Get("se"), resource, q.Get("si"), q.Get("sip"), q.Get("spr"),
		version}
	if version >= withSnapshots {
		snapshot := ""
		if q.Get("sr") == "bs" {
			snapshot = at.Snapshot
		}
		fields = append(fields, q.Get("sr"), snapshot)
	}
	if version >= "2020-12-06" {
		fields = append(fields, q.Get("ses"))
	}
	return strings.Join(append(fields, q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct")), "\n")
}

// accountText returns what is signed for a whole account.
func accountText(q url.Values, account string) string {
	fields := []string{account, q.Get("sp"), q.Get("ss"), q.Get("srt"), q.Get("st"), q.Get("se"), q.Get("sip"),
		q.Get("spr"), q.Get("sv")}
	if q.Get("sv") >= "2020-12-06" {
		fields = append(fields, q.Get("ses"))
	}
	return strings.Join(fields, "\n") + "\n"
}

var sasTimes = []string{"2006-01-02T15:04:05Z", "2006-01-02T15:04:05.0000000Z", "2006-01-02T15:04Z", "2006-01-02"}

func parseSASTime(s string) (time.Time, bool) {
	for _, form := range sasTimes {
		if t, err := time.Parse(form, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func checkTimes(start, expiry string, now time.Time) error {
	end, ok := parseSASTime(expiry)
	if !ok {
		return authFault("The expiry se is missing or not well formed.")
	}
	begin := time.Time{}
	if start != "" {
		if begin, ok = parseSASTime(start); !ok {
			return authFault("The start st is not well formed.")
		}
	}
	if now.Before(begin) || !now.Before(end) {
		const form = "Signature not valid in the specified time frame: Start [%s] - Expiry [%s] - Current [%s]"
		return authFault(fmt.Sprintf(form, start, expiry, timeOf(now.UnixNano())))
	}
	return nil
}

// addressAllowed reports whether an address, or a range of them, has the one of the caller.
func addressAllowed(allowed, remote string) bool {
	if allowed == "" {
		return true
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(host)
	first, last, isRange := strings.Cut(allowed, "-")
	if !isRange {
		last = first
	}
	from, err1 := netip.ParseAddr(first)
	to, err2 := netip.ParseAddr(last)
	if err != nil || err1 != nil || err2 != nil {
		return false
	}
	at = at.Unmap()
	return at.Compare(from.Unmap()) >= 0 && at.Compare(to.Unmap()) <= 0
}

func checkAccountSAS(q url.Values, op *operation, needs string) error {
	switch {
	case !strings.Contains(q.Get("ss"), "b"):
		return errService
	case !strings.Contains(q.Get("srt"), [...]string{ofAccount: "s", ofContainer: "c", ofBlob: "o"}[op.kind]):
		return errResourceType
	case !permitted(q.Get("sp"), needs):
		return errPermission
	}
	return nil
}

func checkServiceSAS(q url.Values, at azureblob.Place, op *operation, needs string) error {
	switch kind := q.Get("sr"); {
	case kind != "b" && kind != "bs" && kind != "c":
		return authFault("The resource sr is not b, bs or c.")
	case op.kind == ofAccount, kind != "c" && op.kind != ofBlob, kind == "bs" && at.Snapshot == "":
		return errAuthorization
	case kind != "c" && at.Snapshot != "" && q.Get("sv") < withSnapshots:
		return errAuthorization
	case op.kind == ofContainer && op.name != "list-blobs":
		return errAuthorization // what is done to a container itself needs a key
	case !permitted(q.Get("sp"), needs):
		return errPermission
	}
	return nil
}

// permitted reports whether one of the permissions that are enough was given.
func permitted(given, needs string) bool { return strings.ContainsAny(given, needs) }
