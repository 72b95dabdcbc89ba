package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// A Device is a login by the device flow of OAuth (RFC 8628): the person confirms in a browser, on any machine.
type Device struct {
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"client_id"`
	Scopes   []string `json:"scopes,omitempty"`
	Refresh  string   `json:"refresh_token,omitempty"`

	client *http.Client
}

// Flags returns those of leasehold login by which somebody logs in again in the same way; none if d is nil.
func (d *Device) Flags() (flags []string) {
	if d == nil {
		return nil
	}
	flags = []string{"--issuer", d.Issuer, "--client-id", d.ClientID}
	for _, scope := range d.Scopes {
		flags = append(flags, "--scope", scope)
	}
	return flags
}

// endpoints are what an issuer says of itself.
type endpoints struct {
	Issuer string `json:"issuer"`
	Device string `json:"device_authorization_endpoint"`
	Token  string `json:"token_endpoint"`
}

// A Prompt is what the person has to do.
type Prompt struct {
	URL      string `json:"verification_uri"`
	Complete string `json:"verification_uri_complete"` // the same, with the code in it; may be empty
	Code     string `json:"user_code"`

	DeviceCode string `json:"device_code"`
	ExpiresIn  int    `json:"expires_in"`
	Interval   int    `json:"interval"`
}

// tokens are what an issuer answers.
type tokens struct {
	ID          string `json:"id_token"`
	Access      string `json:"access_token"`
	Refresh     string `json:"refresh_token"`
	ExpiresIn   int    `json:"expires_in"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// Begin asks the issuer for a code, shows it by ask, and waits until the person has confirmed.
func (d *Device) Begin(ctx context.Context, now func() time.Time, ask func(Prompt)) (Credential, error) {
	at, err := d.discover(ctx)
	if err != nil {
		return Credential{}, err
	}
	if at.Device == "" {
		return Credential{}, fmt.Errorf("%s has no device_authorization_endpoint: use a token instead "+
			"(leasehold login)", d.Issuer)
	}
	scopes := d.Scopes
	if len(scopes) == 0 {
		scopes = []string{"openid", "offline_access"}
	}
	var p Prompt
	form := url.Values{"client_id": {d.ClientID}, "scope": {strings.Join(scopes, " ")}}
	if err := d.post(ctx, at.Device, form, &p); err != nil {
		return Credential{}, err
	}
	if p.DeviceCode == "" || p.Code == "" || p.URL == "" {
		return Credential{}, fmt.Errorf("%s answered without a code", at.Device)
	}
	ask(p)
	return d.poll(ctx, at, p, now)
}

// poll asks again and again whether the person has confirmed.
func (d *Device) poll(ctx context.Context, at endpoints, p Prompt, now func() time.Time) (Credential, error) {
	every := time.Duration(min(max(p.Interval, 1), 60)) * time.Second
	if p.Interval == 0 {
		every = 5 * time.Second // as the RFC says
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(min(max(p.ExpiresIn, 60), 3600))*time.Second,
		errors.New("the code has expired: run leasehold login again"))
	defer cancel()
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {p.DeviceCode},
		"client_id": {d.ClientID}}
	for {
		select {
		case <-ctx.Done():
			return Credential{}, context.Cause(ctx)
		case <-time.After(every):
		}
		var t tokens
		err := d.post(ctx, at.Token, form, &t)
		switch {
		case t.Error == "authorization_pending":
		case t.Error == "slow_down":
			every += 5 * time.Second
		case err != nil:
			return Credential{}, err
		default:
			return d.keep(t, now())
		}
	}
}

// refresh gets another token for one that ended.
func (d *Device) refresh(ctx context.Context, now time.Time) (Credential, error) {
	at, err := d.discover(ctx)
	if err != nil {
		return Credential{}, err
	}
	var t tokens
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {d.Refresh}, "client_id": {d.ClientID}}
	if err := d.post(ctx, at.Token, form, &t); err != nil {
		return Credential{}, err
	}
	return d.keep(t, now)
}

// keep makes a credential of an answer. The ID token is what says who the person is; an issuer that sends none may
// have put it into the access token.
func (d *Device) keep(t tokens, now time.Time) (Credential, error) {
	c := Credential{Token: t.ID, Login: &Device{Issuer: d.Issuer, ClientID: d.ClientID, Scopes: d.Scopes,
		Refresh: d.Refresh, client: d.client}}
	if c.Token == "" {
		c.Token = t.Access
	}
	if c.Token == "" {
		return Credential{}, fmt.Errorf("%s answered without a token", d.Issuer)
	}
	if t.Refresh != "" {
		c.Login.Refresh = t.Refresh
	}
	if t.ExpiresIn > 0 {
		c.Expires = now.Add(time.Duration(t.ExpiresIn) * time.Second)
	}
	return c, nil
}

func (d *Device) discover(ctx context.Context) (at endpoints, err error) {
	address := strings.TrimSuffix(d.Issuer, "/") + "/.well-known/openid-configuration"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return at, err
	}
	if err := d.send(r, &at); err != nil {
		return at, err
	}
	if strings.TrimSuffix(at.Issuer, "/") != strings.TrimSuffix(d.Issuer, "/") {
		return at, fmt.Errorf("%s says that it is %s: use that address if you trust it", d.Issuer, at.Issuer)
	}
	return at, nil
}

func (d *Device) post(ctx context.Context, address string, form url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return d.send(r, into)
}

// send asks the issuer. Its secrets travel only over TLS, or within this machine.
func (d *Device) send(r *http.Request, into any) error {
	if r.URL.Scheme != "https" && !local(r.URL.Hostname()) {
		return fmt.Errorf("%s is not https: an issuer needs TLS", r.URL.Redacted())
	}
	r.Header.Set("Accept", "application/json")
	client := d.client
	if client == nil {
		client = &http.Client{Timeout: 15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	bad := json.Unmarshal(body, into)
	if response.StatusCode == http.StatusOK {
		return bad
	}
	if t, ok := into.(*tokens); ok && t.Error != "" {
		return &refusedError{r.URL.Host + " says: " + strings.TrimSpace(t.Error+" "+t.Description)}
	}
	return fmt.Errorf("%s answered %s", r.URL.Redacted(), response.Status)
}

// A refusedError is what an issuer says that was reached and will not say anything else.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
