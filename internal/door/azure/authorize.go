package azure

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door"
)

// maxSkew is how far a client's clock may be from the server's, as in Azure.
const maxSkew = 15 * time.Minute

// authorize checks the caller's proof: a signature with one of the account's keys, a token of ours, or a shared
// access signature in the query.
func (c *call) authorize() error {
	var err error
	scheme, value, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "SharedKey"):
		err = c.checkSharedKey(value, false)
	case strings.EqualFold(scheme, "SharedKeyLite"):
		err = c.checkSharedKey(value, true)
	case strings.EqualFold(scheme, "Bearer"):
		err = c.checkBearer(value)
	case scheme != "":
		err = authFault("Authentication scheme " + cut(scheme, 64) + " is not supported.")
	case c.limited():
		err = c.checkSAS(c.query, c.at, c.op)
	default:
		err = errNoAuthentication
	}
	if err != nil {
		return c.failed(err)
	}
	c.introduceCaller()
	return nil
}

// failed counts a proof that does not hold, and returns what to answer. A credential of the policy has been counted.
func (c *call) failed(err error) error {
	if faultOf(err).code == errAuthentication.code {
		return cmp.Or(c.door.backend.FailedAccount(c.r), err)
	}
	return err
}

// introduceCaller keeps who was proven: the account, or with a credential of the policy the one that has it.
func (c *call) introduceCaller() {
	address, _, err := net.SplitHostPort(c.r.RemoteAddr)
	if err != nil {
		address = c.r.RemoteAddr
	}
	name := c.at.Account
	if c.proof == nil {
		c.proof = c.door.backend.ProveAccount(c.r.Context(), c.at.Account)
	} else {
		name = c.proof.Asker.Principal
	}
	c.who = cut(name+"@"+address, 256)
	c.ctx = door.WithCaller(c.ctx, door.Caller{
		Origin: leasehold.Origin{Actor: c.at.Account, Address: cut(address, 256), Door: doorName}, Proof: c.proof,
	})
}

// limited reports whether a request was let in by a shared access signature, which allows less than a key.
func (c *call) limited() bool {
	return c.query.Get("sig") != "" && c.r.Header.Get("Authorization") == ""
}

// checkSharedKey checks a signature over the request. value is account:signature.
func (c *call) checkSharedKey(value string, lite bool) error {
	name, signature, ok := strings.Cut(value, ":")
	given, err := base64.StdEncoding.DecodeString(signature)
	if !ok || err != nil || len(given) != sha256.Size {
		return errInvalidHeader.with("HeaderName", "Authorization")
	}
	if fault := c.checkDate(); fault != nil {
		return fault
	}
	if name != c.at.Account {
		return authFault("The account in the Authorization header is not the one in the address.")
	}
	text := stringToSign(c.r, c.at.Account, c.path, c.query)
	if lite {
		text = stringToSignLite(c.r, c.at.Account, c.path, c.query)
	}
	if c.signed(text, given) {
		return nil
	}
	return authFault("The MAC signature found in the HTTP request '" + cut(signature, 64) +
		"' is not the same as any computed signature. Server used following string to sign: '" + text + "'.")
}

// signed reports whether one of the account's keys made a signature. It takes as long for an account that does not
// exist, so that the time does not reveal which accounts do. All keys are tried, for the same reason.
func (c *call) signed(text string, given []byte) bool {
	keys := c.door.config.Accounts.Keys(c.at.Account)
	if len(keys) == 0 {
		keys = [][]byte{make([]byte, 64)}
	}
	good := false
	for _, key := range keys {
		good = hmac.Equal(sign(key, text), given) || good
	}
	return good && len(c.door.config.Accounts.Keys(c.at.Account)) > 0
}

func sign(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// checkDate refuses a request that was signed too long ago: it may be a recorded one.
func (c *call) checkDate() *fault {
	value := c.r.Header.Get("X-Ms-Date")
	if value == "" {
		value = c.r.Header.Get("Date")
	}
	if value == "" {
		return authFault("The Date header is missing: give x-ms-date.")
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return authFault("The Date header in the request is incorrect.")
	}
	if age := time.Since(at); age > maxSkew || age < -maxSkew {
		return authFault("Request date header too old or too far ahead: '" + value + "'; the server's clock says '" +
			timeOf(time.Now().UnixNano()) + "'.")
	}
	return nil
}

// stringToSign is what SharedKey signs: exactly these lines in this order, empty ones included. A length of 0 is
// written as nothing, and a Date is left out if x-ms-date is there.
func stringToSign(r *http.Request, account, path string, query url.Values) string {
	length := ""
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	h := r.Header
	date := h.Get("Date")
	if h.Get("X-Ms-Date") != "" {
		date = ""
	}
	return strings.Join([]string{
		r.Method, h.Get("Content-Encoding"), h.Get("Content-Language"), length,
		h.Get("Content-Md5"), h.Get("Content-Type"), date,
		h.Get("If-Modified-Since"), h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"),
		h.Get("Range"),
		canonicalHeaders(h) + canonicalResource(account, path, query),
	}, "\n")
}

// stringToSignLite is what SharedKeyLite signs.
func stringToSignLite(r *http.Request, account, path string, query url.Values) string {
	h := r.Header
	date := h.Get("Date")
	if h.Get("X-Ms-Date") != "" {
		date = ""
	}
	resource := "/" + account + path
	if comp := query.Get("comp"); comp != "" {
		resource += "?comp=" + comp
	}
	return strings.Join([]string{
		r.Method, h.Get("Content-Md5"), h.Get("Content-Type"), date, canonicalHeaders(h) + resource,
	}, "\n")
}

// canonicalHeaders returns all headers that begin with x-ms-, each on a line of its own.
func canonicalHeaders(h http.Header) string {
	var lines []string
	for name, values := range h {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			trimmed := make([]string, len(values))
			for i, v := range values {
				trimmed[i] = strings.TrimSpace(v)
			}
			lines = append(lines, lower+":"+strings.Join(trimmed, ",")+"\n")
		}
	}
	// By name, and not by line: a colon sorts after a dash.
	slices.SortFunc(lines, func(a, b string) int {
		x, _, _ := strings.Cut(a, ":")
		y, _, _ := strings.Cut(b, ":")
		return strings.Compare(x, y)
	})
	return strings.Join(lines, "")
}

// canonicalResource returns the path and the query parameters as they are signed: names in lower case and sorted,
// the values of one name sorted and joined.
func canonicalResource(account, path string, query url.Values) string {
	if path == "" {
		path = "/"
	}
	merged := map[string][]string{}
	for name, values := range query {
		lower := strings.ToLower(name)
		merged[lower] = append(merged[lower], values...)
	}
	names := make([]string, 0, len(merged))
	for name := range merged {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("/" + account + path)
	for _, name := range names {
		slices.Sort(merged[name])
		b.WriteString("\n" + name + ":" + strings.Join(merged[name], ","))
	}
	return b.String()
}
