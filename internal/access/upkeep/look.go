package upkeep

import (
	"context"
	"fmt"
	"time"

	guard "github.com/leasehold/leasehold/internal/access"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// lookEvery is how often a server looks whether there is something to do.
const lookEvery = time.Minute

// Run looks after access until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		k.look(asSystem(ctx))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (k *Keeper) look(ctx context.Context) {
	// Not patiently: what failed is done at the next look.
	var policy *access.Policy
	if err := k.engine.Read(ctx, func(v core.View) { policy = v.Policy() }); err != nil {
		return
	}
	k.lookAtEnds(policy)
	if k.differs() {
		if change, problem := k.compare(ctx); change == nil {
			k.doubt(problem) // which may be over
		}
	}
}

func (k *Keeper) differs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file != ""
}

// lookAtEnds warns of tokens that end soon, by their number alone: warnings are shown to everybody.
func (k *Keeper) lookAtEnds(policy *access.Policy) {
	soon := len(guard.Ending(policy, k.Now()))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ending, k.ends = soon, ""
	switch {
	case soon == 1:
		k.ends = "a token ends within 7 days: see leasehold access token list, and make a new one in time"
	case soon > 1:
		k.ends = fmt.Sprintf("%d tokens end within 7 days: see leasehold access token list, and make new ones in time",
			soon)
	}
}

// Ending returns how many tokens end soon.
func (k *Keeper) Ending() float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return float64(k.ending)
}
