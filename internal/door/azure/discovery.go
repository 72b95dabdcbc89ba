package azure

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/audit"
	"github.com/leasehold/leasehold/internal/azureaccount"
)

// What azurerm asks before it asks for a blob: where things are, a token, and what the account
// is. All of it is answered on the same port, so that users have to know one address only.

var (
	tokenPath   = regexp.MustCompile(`^/login/[^/]+/oauth2(/v2\.0)?/token$`)
	openIDPath  = regexp.MustCompile(`^/login/([^/]+)(/v2\.0)?/\.well-known/openid-configuration$`)
	accountPath = regexp.MustCompile(`(?i)^/subscriptions/([^/]+)/resourceGroups/([^/]+)` +
		`/providers/Microsoft\.Storage/storageAccounts/([^/]+?)(/listKeys)?$`)
)

// discover answers a request that is not about a blob. It reports whether it was one.
func (c *call) discover() (bool, error) {
	if hostForm.MatchString(strings.ToLower(c.r.Host)) {
		return false, nil
	}
	get, post := c.r.Method == http.MethodGet, c.r.Method == http.MethodPost
	switch {
	case c.path == "/metadata/endpoints" && get:
		return true, c.endpoints()
	case tokenPath.MatchString(c.path) && post:
		return true, c.login()
	case openIDPath.MatchString(c.path) && get:
		return true, c.openID(openIDPath.FindStringSubmatch(c.path)[1])
	}
	m := accountPath.FindStringSubmatch(c.path)
	switch {
	case m != nil && (m[4] == "" && get || m[4] != "" && post):
		return true, c.manage(m)
	case azureaccount.Reserved(strings.Split(c.path, "/")[1:][0]):
		return true, c.answerJSON(http.StatusNotFound, armError("ResourceNotFound", "there is nothing at this address"))
	}
	return false, nil
}

func (c *call) answerJSON(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b)
	return nil
}

type object = map[string]any

func armError(code, message string) object {
	return object{"error": object{"code": code, "message": message}}
}

// endpoints answers where everything is: here. The port belongs to the suffix, of which
// azurerm makes host names.
func (c *call) endpoints() error {
	suffix := c.door.config.Domain
	if _, port, err := net.SplitHostPort(c.r.Host); err == nil {
		suffix += ":" + port
	}
	entry := object{
		"name": "Leasehold", "resourceManager": c.base(), "microsoftGraphResourceId": c.base() + "/graph",
		"graph": c.base() + "/graph", "portal": c.base(),
		"authentication": object{
			"loginEndpoint": c.base() + "/login", "audiences": []string{c.base() + "/", c.base()}, "tenant": "common",
			"identityProvider": "AAD",
		},
		"suffixes": object{"storage": suffix},
	}
	// Azure answered with a list before 2022.
	if version := c.query.Get("api-version"); version != "" && version < "2022-09-01" {
		return c.answerJSON(http.StatusOK, []object{entry})
	}
	return c.answerJSON(http.StatusOK, entry)
}

func (c *call) openID(tenant string) error {
	login := c.base() + "/login/" + url.PathEscape(tenant)
	return c.answerJSON(http.StatusOK, object{
		"issuer":                 login + "/v2.0",
		"token_endpoint":         login + "/oauth2/v2.0/token",
		"authorization_endpoint": login + "/oauth2/v2.0/authorize",
	})
}

const maxForm = 64 << 10

// login gives a token to a client whose secret is a key of an account. The client id may be
// the account's name; Azure's own are GUIDs, and then the account is the one with that key.
func (c *call) login() error {
	text, err := c.smallBody(maxForm)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil || form.Get("grant_type") != "client_credentials" {
		return c.answerJSON(http.StatusBadRequest, object{"error": "unsupported_grant_type",
			"error_description": "this server gives tokens for client_credentials only"})
	}
	id := form.Get("client_id")
	name, key := c.door.accountOf(id, form.Get("client_secret"))
	if name == "" {
		if err := c.door.backend.FailedAccount(c.r); err != nil {
			return err
		}
		c.refused(audit.Login, leasehold.Denied, "the client secret is not a key of an account here")
		return c.answerJSON(http.StatusUnauthorized, object{"error": "invalid_client",
			"error_description": "the client secret is not a key of any account of this server; " +
				"list them with: leasehold azure account list",
			"error_codes": []int{7000215}})
	}
	now := time.Now()
	tenant := strings.Split(c.path, "/")[2]
	token := c.door.issue(claims{
		Audience: strings.TrimSuffix(form.Get("scope"), "/.default"), Issuer: c.base() + "/login/" + tenant,
		Issued: now.Unix(), NotYet: now.Unix(),
		Expires: now.Add(tokenTime).Unix(), Client: id, Object: id, Subject: id, Tenant: tenant, Kind: "app",
		Account: name, Key: fingerprint(key),
	})
	return c.answerJSON(http.StatusOK, object{"token_type": "Bearer", "expires_in": int(tokenTime.Seconds()),
		"ext_expires_in": int(tokenTime.Seconds()), "access_token": token})
}

// accountOf finds the account whose key a client secret is. It compares with all of them, so
// that the time it takes says nothing.
func (d *Door) accountOf(id, secret string) (name string, key []byte) {
	given, err := base64.StdEncoding.DecodeString(secret)
	if err != nil || len(given) == 0 {
		return "", nil
	}
	for _, one := range d.config.Accounts.Names() {
		for _, k := range d.config.Accounts.Keys(one) {
			same := subtle.ConstantTimeCompare(k, given) == 1
			if same && (id == one || !azureaccount.ValidName(id)) {
				name, key = one, k
			}
		}
	}
	return name, key
}

// manage answers what Azure's resource manager would answer about an account.
func (c *call) manage(m []string) error {
	name := m[3]
	scheme, token, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	claims, ok := c.door.openToken(token, time.Now())
	if denied := !strings.EqualFold(scheme, "Bearer") || !ok || claims.Account != name; denied {
		if err := c.door.backend.FailedAccount(c.r); err != nil {
			return err
		}
		c.refused(audit.Login, leasehold.Denied,
			"the token is not one of this server's, has expired, or is of another account than "+brief(name))
	}
	switch {
	case !strings.EqualFold(scheme, "Bearer") || !ok:
		c.w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="`+c.base()+
			`/login/common", error="invalid_token"`)
		return c.answerJSON(http.StatusUnauthorized,
			armError("InvalidAuthenticationToken", "the token is not one of this server's, or it has expired"))
	case claims.Account != name:
		return c.answerJSON(http.StatusForbidden, armError("AuthorizationFailed", "the token is of another account"))
	case m[4] != "":
		return c.answerJSON(http.StatusOK, object{"keys": c.keyList(name)})
	}
	return c.answerJSON(http.StatusOK, object{
		"id": path.Join("/subscriptions", m[1], "resourceGroups", m[2],
			"providers/Microsoft.Storage/storageAccounts", name),
		"name": name, "type": "Microsoft.Storage/storageAccounts", "location": "leasehold", "kind": "StorageV2",
		"sku": object{"name": "Standard_LRS", "tier": "Standard"},
		"properties": object{"provisioningState": "Succeeded",
			"primaryEndpoints": object{"blob": c.base() + "/" + name}},
	})
}

func (c *call) keyList(name string) (list []object) {
	for i, key := range c.door.config.Accounts.Keys(name) {
		list = append(list, object{"keyName": [...]string{"key1", "key2"}[i],
			"value": base64.StdEncoding.EncodeToString(key), "permissions": "FULL"})
	}
	return list
}
