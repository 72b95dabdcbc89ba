package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// A File declares who may do what.
type File struct {
	Name string
	Hash string // equal for files that say the same

	// Items returns what the file declares. Tokens that it only names are those of the policy.
	Items func(current *access.Policy, now time.Time) (access.Items, error)
}

// declareTries is how often somebody else may be faster.
const declareTries = 10

// declare applies the file, if it differs from what is in force. If it cannot be, the server goes on with what is in
// force, and says so.
func (k *Keeper) declare(ctx context.Context) {
	if k.File == nil {
		return
	}
	for range declareTries {
		change, problem := k.compare(ctx)
		if change == nil {
			k.doubt(problem)
			return
		}
		err := patiently(ctx, func() error {
			_, err := k.engine.Do(ctx, change)
			return err
		})
		if err == nil {
			k.Log.Info("the access file was applied", "file", k.File.Name)
			k.doubt("")
			return
		}
		k.doubt(fmt.Sprintf("the access file %s cannot be applied: %v", k.File.Name, err))
		policy, readErr := k.policy(ctx)
		if !errors.Is(err, leasehold.ErrRefused) || readErr != nil || policy.At() == change.IfRevision {
			return
		}
	}
}

// doubt sets the warning about the file.
func (k *Keeper) doubt(problem string) {
	k.mu.Lock()
	isNew := problem != "" && k.file != problem
	k.file = problem
	k.mu.Unlock()
	if isNew {
		k.Log.Warn(problem)
	}
}

// compare returns the change that applies the file, or nil: then it is in force, or there is a problem.
//
// Files that differ between servers must not undo each other, whichever server starts when. Only the server whose
// file was applied last may replace it by another; or any, once that server is no longer in the cluster.
func (k *Keeper) compare(ctx context.Context) (change *core.ChangeAccess, problem string) {
	policy, err := k.policy(ctx)
	if err != nil || policy == nil {
		return nil, ""
	}
	items, err := k.File.Items(policy, k.Now())
	if err != nil {
		return nil, fmt.Sprintf("the access file %s cannot be applied: %v", k.File.Name, err)
	}
	last, same := policy.Declared, !policy.Changes(policy.Without(items), items)
	if same && last.Hash == k.File.Hash {
		return nil, ""
	}
	if !same && !k.mayReplace(ctx, last) {
		return nil, fmt.Sprintf("the access file %s differs from the one that server %s applied, and is not "+
			"used: give all servers the same file, and restart %[2]s", k.File.Name, last.Server)
	}
	return &core.ChangeAccess{
		Replace: true, Put: items, IfRevision: policy.At(), Wall: k.Now().UnixNano(), By: k.actor(),
		Reason: "access file", Declared: access.Declaration{Hash: k.File.Hash, Server: k.Server},
	}, ""
}

// mayReplace reports whether the file of this server may replace the one that was applied last.
func (k *Keeper) mayReplace(ctx context.Context, last access.Declaration) bool {
	if last.Hash == "" || last.Hash == k.File.Hash || last.Server == k.Server {
		return true
	}
	cluster, ok := k.engine.(engine.Cluster)
	if !ok {
		return false
	}
	outlook, err := cluster.Outlook(ctx)
	return err == nil && !slices.ContainsFunc(outlook.Servers, func(s engine.Server) bool {
		return s.Name == last.Server
	})
}
