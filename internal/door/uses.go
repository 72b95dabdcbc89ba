package door

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"
)

// When the use of tokens is written down. One command is enough for all that were used within a minute.
const (
	useDelay = time.Minute
	useTime  = 5 * time.Second
)

// uses collects which tokens were used, until it is written to the log. What cannot be written is forgotten: a use
// an hour later tells it again.
type uses struct {
	engine engine.Engine

	mu   sync.Mutex // guards what follows
	list []access.Use
}

func (u *uses) note(use access.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.list) >= access.MaxChange {
		return
	}
	if u.list = append(u.list, use); len(u.list) == 1 {
		time.AfterFunc(useDelay, u.write)
	}
}

func (u *uses) write() {
	u.mu.Lock()
	list := u.list
	u.list = nil
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(engine.WithAsker(context.Background(), &access.System), useTime)
	defer cancel()
	_, _ = u.engine.Do(ctx, &core.ChangeAccess{Used: list})
}
