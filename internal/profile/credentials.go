package profile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A Credential proves who a person is to some servers.
type Credential struct {
	Servers []string  `json:"servers"` // and to no others
	Token   string    `json:"token"`
	Expires time.Time `json:"expires,omitzero"` // of the token, if it is known
	Login   *Device   `json:"login,omitempty"`  // where another token comes from; nil: from the person
}

type credentials struct {
	All map[string]Credential `json:"credentials"`
}

// Key names the credential of a context, or without one that of servers.
func Key(context, servers string) string {
	if context != "" {
		return context
	}
	return servers // which has a colon, and no context does
}

// Credential returns the credential of a key, if there is one that was made for all of the servers.
func (d Dir) Credential(key string, servers []string) (Credential, bool, error) {
	var c credentials
	if err := d.read(credentialsFile, &c); err != nil {
		return Credential{}, false, err
	}
	found, ok := c.All[key]
	for _, server := range servers {
		ok = ok && slices.Contains(found.Servers, server)
	}
	return found, ok, nil
}

// SaveCredential keeps a credential in place of what its key had.
func (d Dir) SaveCredential(key string, credential Credential) error {
	var c credentials
	if err := d.read(credentialsFile, &c); err != nil {
		return err
	}
	if c.All == nil {
		c.All = map[string]Credential{}
	}
	c.All[key] = credential
	return d.write(credentialsFile, c)
}

// ForgetCredential removes the credential of a key, and reports whether there was one.
func (d Dir) ForgetCredential(key string) (bool, error) {
	var c credentials
	if err := d.read(credentialsFile, &c); err != nil {
		return false, err
	}
	if _, ok := c.All[key]; !ok {
		return false, nil
	}
	delete(c.All, key)
	return true, d.write(credentialsFile, c)
}

// A source gives out the token of a credential, and gets another where it can.
type source struct {
	dir Dir
	key string
	now func() time.Time

	mu         sync.Mutex // guards what follows
	credential Credential
}

// Token returns a function for the token of a credential.
func (d Dir) Token(key string, credential Credential, now func() time.Time) v1.TokenFunc {
	s := &source{dir: d, key: key, now: now, credential: credential}
	return s.token
}

// early is how long before its end a token is replaced: the request is still on its way.
const early = 30 * time.Second

func (s *source) token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good(ctx, s.credential) || s.lookAgain(ctx) {
		return s.credential.Token, nil
	}
	c := s.credential
	if c.Login == nil || c.Login.Refresh == "" {
		return c.Token, nil // the server says what is wrong with it
	}
	next, err := c.Login.refresh(ctx, s.now())
	if err != nil {
		if s.lookAgain(ctx) {
			return s.credential.Token, nil
		}
		return "", ended(c.Login.Issuer, err)
	}
	next.Servers = c.Servers
	s.credential = next
	// If it cannot be kept, it is good for this command at least.
	_ = s.dir.SaveCredential(s.key, next)
	return next.Token, nil
}

// good reports whether the token of a credential is worth a try.
func (s *source) good(ctx context.Context, c Credential) bool {
	return v1.Rejected(ctx) != c.Token && (c.Expires.IsZero() || s.now().Add(early).Before(c.Expires))
}

// lookAgain takes what is kept now, and reports whether its token is good: another command, which runs at the same
// time, may have got one, with a refresh token that many issuers take only once; or the person has logged in again.
func (s *source) lookAgain(ctx context.Context) bool {
	kept, ok, err := s.dir.Credential(s.key, s.credential.Servers)
	if err != nil || !ok || kept.Token == s.credential.Token {
		return false
	}
	s.credential = kept
	return s.good(ctx, kept)
}

// An endedError is the error of a login that the issuer does not continue. It is told as the server would, had it been
// sent the token that has ended.
type endedError struct{ err *leasehold.Error }

func (e *endedError) Error() string   { return e.err.Error() }
func (e *endedError) Unwrap() []error { return []error{e.err, v1.ErrUnauthenticated} }

// ended returns the error of a login for which there is no other token.
func ended(issuer string, err error) error {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return fmt.Errorf("the login cannot be renewed, because %s cannot be asked: %w", issuer, err)
	}
	return &endedError{&leasehold.Error{Code: leasehold.Denied,
		Message: fmt.Sprintf("your login at %s has ended: %v", issuer, err)}}
}
