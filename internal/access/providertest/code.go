package providertest

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A Person is who sits at the browser.
type Person struct {
	Claims Set  // that are put into the ID token, over what the provider claims by itself
	Denies bool // does not agree
}

// A visit is one of a browser, from which it went back with a code.
type visit struct {
	query url.Values // it came with
}

// authorize sends the browser back at once: nobody is asked for a password here.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("client_id") != ClientID || q.Get("response_type") != "code" || q.Get("state") == "" ||
		q.Get("nonce") == "" || q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "this is not a sign-in", http.StatusBadRequest)
		return
	}
	answer := url.Values{"state": {q.Get("state")}}
	if !p.Nameless {
		answer.Set("iss", p.URL())
	}
	if p.Person.Denies {
		answer.Set("error", "access_denied")
	} else {
		code := "code-" + strconv.Itoa(len(p.codes)+1)
		p.codes[code] = &visit{query: q}
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// redeem answers with the ID token for a code, once. The caller has the lock.
func (p *Provider) redeem(w http.ResponseWriter, r *http.Request) {
	p.Redeemed.Add(1)
	v := p.codes[r.FormValue("code")]
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	id, escaped, _ := r.BasicAuth()
	secret, _ := url.QueryUnescape(escaped)
	if v == nil || v.query == nil || v.query.Get("redirect_uri") != r.FormValue("redirect_uri") ||
		v.query.Get("client_id") != r.FormValue("client_id") ||
		v.query.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		answer(w, http.StatusBadRequest, Set{"error": "invalid_grant"})
		return
	}
	if p.Secret != "" && (id != ClientID || secret != p.Secret) {
		answer(w, http.StatusUnauthorized, Set{"error": "invalid_client"})
		return
	}
	now := time.Now()
	claims := p.Claims(now, Set{"aud": ClientID, "nonce": v.query.Get("nonce")})
	claims["exp"] = now.Add(p.Sessions.Life).Unix()
	for name, value := range p.Person.Claims {
		claims[name] = value
	}
	v.query = nil // it is good once
	answer(w, http.StatusOK, Set{"id_token": Sign(p.t, p.keys[p.newest], claims), "token_type": "Bearer"})
}
