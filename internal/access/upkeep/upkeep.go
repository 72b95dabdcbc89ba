package upkeep

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/access/credential"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// Config is what a Keeper is made from.
type Config struct {
	Dir    string // the data directory
	Server string // the name of this server
	Begin  bool   // access is to be on
	File   *File  // who may do what, as declared; nil: nothing is
	Log    *slog.Logger
	Now    func() time.Time // nil: the clock of this machine
}

// A Keeper looks after access at one server. Its methods may be called from any goroutine.
type Keeper struct {
	Config
	engine engine.Engine

	mu      sync.Mutex // guards what follows
	file    string     // what is wrong about the declared file; empty: nothing
	recover string     // why nobody could be let in again
	ends    string     // how many tokens end soon
	ending  int        // the same as a number
}

// New returns a keeper.
func New(c Config) *Keeper {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Keeper{Config: c}
}

// asSystem lets a server ask by itself.
func asSystem(ctx context.Context) context.Context { return engine.WithAsker(ctx, &access.System) }

// actor is whom the journal names for what a server does by itself.
func (k *Keeper) actor() string { return "server " + k.Server }

// Start does what has to be done before anybody is let in. It reports whether access is on. It is called once, and
// before the other methods.
func (k *Keeper) Start(ctx context.Context, e engine.Engine) (on bool, err error) {
	ctx, k.engine = asSystem(ctx), e
	policy, err := k.policy(ctx)
	if err != nil {
		return false, err
	}
	marked := Marked(k.Dir)
	switch {
	case policy == nil && k.Begin:
		err = k.begin(ctx)
	case policy == nil && marked:
		k.Log.Warn("access is off, so nobody has to be let in again: the mark of leasehold access recover is removed")
		return false, unmark(k.Dir)
	case policy == nil:
		return false, nil
	case marked:
		k.letIn(ctx)
	default:
		err = k.settlePending(policy)
	}
	if err != nil {
		return false, err
	}
	k.declare(ctx)
	return true, nil
}

// policy returns who may do what, as it is now.
func (k *Keeper) policy(ctx context.Context) (p *access.Policy, err error) {
	err = patiently(ctx, func() error {
		return k.engine.Read(ctx, func(v core.View) { p = v.Policy() })
	})
	return p, err
}

// begin makes the first policy, which has one admin. Others may do the same now: then theirs counts, and the token of
// this server is thrown away.
func (k *Keeper) begin(ctx context.Context) error {
	is, err := k.grant(ctx, &core.ChangeAccess{
		IfNone: true, Reason: "bootstrap", Put: access.Items{Bindings: []*access.Binding{adminBinding()}},
	})
	switch {
	case err != nil:
		return err
	case !is:
		k.Log.Info("access is on: another server made the admin token")
		return remove(k.Dir, pendingFile)
	}
	k.Log.Warn("access is on: the admin token is in a file; keep it safe, or make other tokens and delete it",
		"file", TokenFile(k.Dir))
	return nil
}

// letIn makes another admin token for an operator who was locked out. If that fails the server goes on, with the
// mark, and says so: what it serves is in force as before.
func (k *Keeper) letIn(ctx context.Context) {
	is, err := k.grant(ctx, &core.ChangeAccess{
		Reason: "recover", Put: access.Items{Bindings: []*access.Binding{adminBinding()}},
	})
	if err == nil && !is {
		err = errors.New("somebody removed the token at once")
	}
	if err != nil {
		k.warn(&k.recover, "leasehold access recover could not be carried out: "+err.Error())
		k.Log.Error("no admin token could be made, as leasehold access recover asked for", "err", err)
		return
	}
	k.Log.Warn("a new admin token was made, as leasehold access recover asked for", "file", TokenFile(k.Dir))
}

// adminBinding lets the principal admin do everything. It has the name that leasehold access bind gives it.
func adminBinding() *access.Binding {
	return &access.Binding{Name: "admin:admin@*", Role: "admin", Principal: "admin", Namespace: access.AllNamespaces}
}

// grant puts an admin token into the policy, with a change, and reports whether it is there afterwards. The secret is
// on disk before anybody is asked, so a server that fails in between finds it again.
func (k *Keeper) grant(ctx context.Context, change *core.ChangeAccess) (is bool, err error) {
	secret, err := makePending(k.Dir)
	if err != nil {
		return false, err
	}
	hash := credential.Hash(secret)
	change.By, change.Wall = k.actor(), k.Now().UnixNano()
	change.Put.Tokens = []*access.Token{{
		ID: "admin-" + hex.EncodeToString([]byte(hash[:4])), Hash: hash, Principal: "admin",
		Description: change.Reason + " on server " + k.Server, CreatedWall: k.Now().UnixNano(), CreatedBy: change.By,
	}}
	var policy *access.Policy
	err = patiently(ctx, func() error {
		_, err := k.engine.Do(ctx, change)
		if err != nil && !errors.Is(err, leasehold.ErrRefused) {
			return err
		}
		refusal := err
		if policy, err = k.policy(ctx); err == nil && policy == nil {
			err = refusal // not because somebody was faster
		}
		return err
	})
	if err != nil || policy == nil {
		return false, err
	}
	if _, is = policy.TokenOf(hash); !is {
		return false, nil
	}
	// In this order: a server that fails in between finds the secret, and with the mark it would make another token.
	if err = unmark(k.Dir); err == nil {
		err = settle(k.Dir)
	}
	return true, err
}

// settlePending decides about the secret that a server left which failed before it knew whether it counts.
func (k *Keeper) settlePending(policy *access.Policy) error {
	secret, err := pending(k.Dir)
	if err != nil || secret == "" {
		return err
	}
	if _, is := policy.TokenOf(credential.Hash(secret)); !is {
		return remove(k.Dir, pendingFile)
	}
	k.Log.Warn("access is on: the admin token is in a file; keep it safe, or make other tokens and delete it",
		"file", TokenFile(k.Dir))
	return settle(k.Dir)
}

// pause is between two tries.
const pause = 200 * time.Millisecond

// patiently tries again what failed because there is no leader, or whose outcome is unknown.
func patiently(ctx context.Context, try func() error) error {
	for {
		err := try()
		if !errors.Is(err, leasehold.ErrUnavailable) && !errors.Is(err, leasehold.ErrUndecided) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// warn sets one of the warnings.
func (k *Keeper) warn(field *string, text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	*field = text
}

// Warnings returns one sentence for each thing that somebody should look at.
func (k *Keeper) Warnings() (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, text := range []string{k.recover, k.file, k.ends} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}
