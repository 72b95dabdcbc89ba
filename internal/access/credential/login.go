package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/socket"
)

// Config is what a Login is made from.
type Config struct {
	// Local returns the policy as this server has applied it; nil: access is off. It costs next to nothing.
	Local func() *access.Policy
	// Fresh returns the policy with every change that anybody knew of before.
	Fresh func(context.Context) (*access.Policy, error)

	Now     func() time.Time // nil: the clock of this machine
	Client  *http.Client     // that asks issuers for their keys; nil: one of its own
	Log     *slog.Logger     // nil: nothing is written
	Refused func(Reason)     // is told of each refusal; nil: nobody is
	Cached  int              // credentials that are remembered; 0: 32,768
	// Used is told about once an hour that a token is used, and whether it is the first time; nil: nobody is told.
	Used func(use access.Use, first bool)
}

// A Login finds out who asks. Its methods may be called from any goroutine.
type Login struct {
	config   Config
	policies *policies
	cache    *cache
	slow     slowdown
	client   *http.Client

	redeeming chan struct{} // one for each code that is being redeemed
	verifying chan struct{} // one for each JWT that is verified for an address from which too many logins failed
}

// New returns a login.
func New(c Config) *Login {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Refused == nil {
		c.Refused = func(Reason) {}
	}
	if c.Used == nil {
		c.Used = func(access.Use, bool) {}
	}
	if c.Cached == 0 {
		c.Cached = maxCached
	}
	l := &Login{config: c, cache: newCache(c.Cached), slow: slowdown{addresses: map[netip.Prefix]time.Time{}},
		redeeming: make(chan struct{}, maxRedeeming), verifying: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	l.client = careful(c.Client)
	l.policies = &policies{local: c.Local, read: c.Fresh, index: l.index}
	return l
}

// Now returns the time by which credentials end.
func (l *Login) Now() time.Time { return l.config.Now() }

// index looks up what a policy has for logins. Issuers that are as before keep their keys.
func (l *Login) index(old *known, policy *access.Policy) *known {
	if old != nil {
		l.cache.keep(old.policy) // what is in use has been judged by it
	}
	k := &known{policy: policy, issuers: map[string][]*issuer{}}
	if policy == nil {
		return k
	}
	for _, i := range policy.Issuers() {
		made := &issuer{Issuer: i}
		if old != nil {
			made.keys = old.keysOf(i)
		}
		if made.keys == nil {
			made.keys = l.newKeys(i)
		}
		k.issuers[i.URL] = append(k.issuers[i.URL], made)
	}
	k.rules = policy.Certificates()
	return k
}

// On reports whether access is on.
func (l *Login) On() bool { return l.config.Local() != nil }

// Policy returns the policy as this server has applied it; nil: access is off.
func (l *Login) Policy() *access.Policy { return l.config.Local() }

// Check returns who shows something, or nil and no error if access is off. The error is a *Refusal, or says why the
// policy cannot be read.
func (l *Login) Check(ctx context.Context, s Shown) (*Proof, error) {
	k := l.policies.here()
	switch {
	case k.policy == nil:
		return nil, nil
	case s.nothing():
		return nil, l.refused(refuse(Missing, "no credential was sent: run leasehold login, or send a token in the "+
			"header \"Authorization: Bearer TOKEN\", over RESP by AUTH TOKEN"))
	}
	name := s.key()
	e := l.cache.get(&name)
	if now := l.config.Now(); e != nil && e.holds(k, now) {
		l.note(e, now)
		return e.proof, nil
	}
	return l.prove(ctx, s, name, k, e != nil)
}

// Knows reports whether Check answers at once: by what is remembered, without asking an issuer or the other servers.
func (l *Login) Knows(s Shown) bool {
	k := l.policies.here()
	if k.policy == nil || s.nothing() {
		return true
	}
	name := s.key()
	e := l.cache.get(&name)
	return e != nil && e.holds(k, l.config.Now())
}

// Account returns the proof of somebody who has the key of an account of the Azure door, which has checked that. It is
// nil if access is off.
func (l *Login) Account(account string) *Proof {
	k := l.policies.here()
	if k.policy == nil {
		return nil
	}
	name, now := accountKey(account), l.config.Now()
	if e := l.cache.get(&name); e != nil && e.holds(k, now) {
		return e.proof
	}
	return l.remember(name, &entry{policy: k.policy, proof: &Proof{
		Asker: &access.Asker{Principal: access.AzureIssuer + ":" + account}, Kind: Azure,
	}})
}

// prove judges a credential about which nothing is remembered that still holds. What is cheap to judge, or was good
// before, is let in at once. So is a JWT that one of the known keys has signed: others at its address may guess as they
// like. Otherwise the address has to be one from which not too many logins failed.
func (l *Login) prove(ctx context.Context, s Shown, name key, k *known, before bool) (*Proof, error) {
	judged := before || s.Secret == "" || isToken(s.Secret)
	if judged {
		if e, err := l.judge(ctx, &s, k); err == nil {
			return l.remember(name, e), nil
		}
	}
	from := socket.Network(s.From)
	if slowed := l.enter(from); slowed != nil {
		if e := l.judgeSigned(ctx, &s, k); e != nil {
			return l.remember(name, e), nil
		}
		return nil, l.refused(slowed)
	}
	e, err := l.judgeTwice(ctx, &s, k)
	var r *Refusal
	if !errors.As(err, &r) || r.Reason == Unreachable {
		l.slow.leave(from)
	}
	switch {
	case err != nil:
		l.cache.drop(name)
		return nil, l.refused(err)
	case e == nil: // access was turned off
		return nil, nil
	}
	return l.remember(name, e), nil
}

// judgeSigned judges a JWT by the keys that are known, for an address from which too many logins failed; nil: it is not
// good. No more of them are verified at a time than leaves half of the machine to others.
func (l *Login) judgeSigned(ctx context.Context, s *Shown, k *known) *entry {
	if s.Secret == "" || isToken(s.Secret) {
		return nil
	}
	select {
	case l.verifying <- struct{}{}:
		defer func() { <-l.verifying }()
	case <-ctx.Done():
		return nil
	}
	keys := func(i *issuer) keySource { return fixed{i.keys.current(l.config.Now())} }
	if e, err := l.judgeJWT(ctx, s.Secret, k, keys); err == nil && e.judged(k) == nil {
		return e
	}
	return nil
}

// enter counts a login that may fail, or returns why it is refused: too many did.
func (l *Login) enter(from netip.Prefix) error {
	wait := l.slow.enter(from, l.config.Now())
	if wait <= 0 {
		return nil
	}
	return &Refusal{Reason: Slowed, Wait: wait, Message: fmt.Sprintf("too many logins failed from this "+
		"address: wait %d s, and check the credential", int(math.Ceil(wait.Seconds())))}
}

// Failed counts a credential that a door has judged by itself and found wrong, whether access is on or off. The error
// is a *Refusal if too many failed from the address: the door answers with that, and says no more about the credential.
func (l *Login) Failed(from string, why Reason) error {
	if err := l.enter(socket.Network(from)); err != nil {
		return l.refused(err)
	}
	l.config.Refused(why)
	return nil
}

// judgeTwice judges a credential by the policy that is known, and if need be by the one that is in force now.
func (l *Login) judgeTwice(ctx context.Context, s *Shown, k *known) (*entry, error) {
	e, err := l.judge(ctx, s, k)
	var r *Refusal
	if err == nil || !errors.As(err, &r) || !r.dated() {
		return e, err
	}
	newest, failed := l.policies.fresh(ctx)
	switch {
	case failed != nil:
		return nil, unread(failed)
	case newest.policy == nil:
		return nil, nil
	case newest == k:
		return nil, err
	}
	return l.judge(ctx, s, newest)
}

// judge says by a policy who shows a credential.
func (l *Login) judge(ctx context.Context, s *Shown, k *known) (*entry, error) {
	var e *entry
	var err error
	switch {
	case s.Secret == "":
		e, err = l.judgeCertificate(s.Certificate, k)
	case isToken(s.Secret):
		e, err = l.judgeToken(s.Secret, k)
	default:
		e, err = l.judgeJWT(ctx, s.Secret, k, (*issuer).source)
	}
	if err != nil {
		return nil, err
	}
	return e, e.judged(k)
}

// judged notes by which policy a credential was found good, and refuses it if what it proves cannot be meant.
func (e *entry) judged(k *known) error {
	e.policy = k.policy
	return check(e.proof)
}

// check refuses a proof that cannot be meant.
func check(p *Proof) error {
	switch {
	case len(p.Asker.Principal) > leasehold.MaxName:
		return refuse(Claims, fmt.Sprintf("the principal of the credential has %d bytes: at most %d are allowed",
			len(p.Asker.Principal), leasehold.MaxName))
	case len(p.Asker.Groups) > access.MaxGroups:
		return refuse(Claims, fmt.Sprintf("the credential is in %d groups that have bindings: at most %d are allowed; "+
			"ask an admin for bindings to fewer groups", len(p.Asker.Groups), access.MaxGroups))
	}
	return nil
}

func (l *Login) judgeToken(secret string, k *known) (*entry, error) {
	t, ok := k.policy.TokenOf(Hash(secret))
	if !ok {
		return nil, refuse(Unknown, "the token is unknown or was revoked: check it, or ask an admin for another one")
	}
	asker := &access.Asker{Principal: t.Principal, Groups: k.named(t.Groups), Token: t.ID}
	p := &Proof{Kind: Token, Asker: asker, token: t}
	if t.ExpiresWall != 0 {
		p.Expires = time.Unix(0, t.ExpiresWall)
	}
	if now := l.config.Now(); p.Expired(now) {
		return nil, refuse(Expired, expiredMessage("token", p.Expires))
	}
	e := &entry{proof: p, token: t.ID}
	e.noted.Store(t.UsedWall)
	return e, nil
}

// useEvery is how exactly the policy knows when a token was last used: what is known better is not worth an entry in
// the log.
const useEvery = time.Hour

// note tells that a token is used, if the policy does not know that yet.
func (l *Login) note(e *entry, now time.Time) {
	if e.token == "" {
		return
	}
	last := e.noted.Load()
	if now.UnixNano()-last >= int64(useEvery) && e.noted.CompareAndSwap(last, now.UnixNano()) {
		l.config.Used(access.Use{ID: e.token, Wall: now.UnixNano()}, last == 0)
	}
}

func expiredMessage(what string, at time.Time) string {
	return fmt.Sprintf("the %s expired at %s: get another one, and run leasehold login again", what,
		at.UTC().Format(time.RFC3339))
}

// named returns the groups of a list that have bindings: others need not travel.
func (k *known) named(groups []string) (named []string) {
	for _, g := range groups {
		if k.policy.NamesGroup(g) {
			named = append(named, g)
		}
	}
	return named
}

func (l *Login) remember(name key, e *entry) *Proof {
	now := l.config.Now()
	l.cache.put(name, e, now)
	l.note(e, now)
	return e.proof
}

// refused counts a refusal.
func (l *Login) refused(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		l.config.Refused(r.Reason)
	}
	return err
}

// unread is the error of a policy that cannot be read. It has a code if the engine gave it one.
func unread(err error) error {
	var coded *leasehold.Error
	if errors.As(err, &coded) {
		return err
	}
	return &leasehold.Error{Code: leasehold.Unavailable,
		Message: "who may do what cannot be read at the moment: try again, or another server"}
}
