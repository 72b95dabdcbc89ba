package providertest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// A login is one by the device flow (RFC 8628), and what follows from it.
type login struct {
	claims  Set    // of the person who confirmed it; nil: nobody has
	refresh string // with which another token can be had; empty: none
}

// Sessions says what the provider gives to those who log in.
type Sessions struct {
	Life    time.Duration // of a token
	Refresh bool          // they get others without logging in again; each refresh token is good once
}

// ask begins a login.
func (p *Provider) ask(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.FormValue("client_id") != ClientID {
		answer(w, http.StatusBadRequest, Set{"error": "invalid_client"})
		return
	}
	code := "CODE-" + strconv.Itoa(len(p.logins)+1)
	p.logins[code] = &login{}
	answer(w, http.StatusOK, Set{"device_code": code, "user_code": code, "verification_uri": p.URL() + "/go",
		"interval": 1, "expires_in": 600})
}

// ClientID is the only client that the provider knows.
const ClientID = "cli"

// Confirm is what a person does in a browser: it is now known who logs in, with what it claims.
func (p *Provider) Confirm(code string, claims Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.logins[code]
	if l == nil {
		p.t.Errorf("nobody logs in with the code %q", code)
		return
	}
	l.claims = claims
}

// End ends all logins: no refresh token is good any more.
func (p *Provider) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.logins)
}

// give answers with tokens.
func (p *Provider) give(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.FormValue("grant_type") == "refresh_token" {
		for _, l := range p.logins {
			if l.refresh != "" && l.refresh == r.FormValue("refresh_token") {
				p.Refreshes.Add(1)
				p.issue(w, l)
				return
			}
		}
		answer(w, http.StatusBadRequest, Set{"error": "invalid_grant", "error_description": "the session has ended"})
		return
	}
	if r.FormValue("grant_type") == "authorization_code" {
		p.redeem(w, r)
		return
	}
	l := p.logins[r.FormValue("device_code")]
	switch {
	case l == nil:
		answer(w, http.StatusBadRequest, Set{"error": "expired_token"})
	case l.claims == nil:
		answer(w, http.StatusBadRequest, Set{"error": "authorization_pending"})
	default:
		p.issue(w, l)
	}
}

// issue answers with the tokens of a login. The caller has the lock.
func (p *Provider) issue(w http.ResponseWriter, l *login) {
	now := time.Now()
	claims := p.Claims(now, l.claims)
	claims["exp"] = now.Add(p.Sessions.Life).Unix()
	p.issued++
	got := Set{"id_token": Sign(p.t, p.keys[p.newest], claims), "token_type": "Bearer",
		"expires_in": int(p.Sessions.Life.Seconds())}
	if p.Sessions.Refresh {
		l.refresh = "refresh-secret-" + strconv.Itoa(p.issued)
		got["refresh_token"] = l.refresh
	}
	answer(w, http.StatusOK, got)
}

func answer(w http.ResponseWriter, status int, value Set) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
