package door

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// When the use of tokens is written down. One command is enough for all that were used within a minute; but who made a
// token, and tries it, wants to see that it was used.
const (
	useDelay   = time.Minute
	firstDelay = 100 * time.Millisecond
	useTime    = 5 * time.Second
)

// uses collects which tokens were used, until it is written to the log. What cannot be written is forgotten: a use
// an hour later tells it again.
type uses struct {
	engine engine.Engine

	mu   sync.Mutex // guards what follows
	list []access.Use
	late *time.Timer // that writes the list; nil: it is empty
	soon bool        // the list has a first use
}

func (u *uses) note(use access.Use, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.list) >= access.MaxChange {
		return
	}
	u.list = append(u.list, use)
	switch {
	case first && !u.soon:
		if u.late != nil {
			u.late.Stop() // if it writes already, the second finds nothing
		}
		u.soon, u.late = true, time.AfterFunc(firstDelay, u.write)
	case u.late == nil:
		u.late = time.AfterFunc(useDelay, u.write)
	}
}

func (u *uses) write() {
	u.mu.Lock()
	list := u.list
	u.list, u.late, u.soon = nil, nil, false
	u.mu.Unlock()
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(engine.WithAsker(context.Background(), &access.System), useTime)
	defer cancel()
	_, _ = u.engine.Do(ctx, &core.ChangeAccess{Used: list})
}
