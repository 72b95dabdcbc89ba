package v1

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/pipeline"
)

// newestLevel is the highest level that makes a difference to a caller.
const newestLevel = max(LevelMany, LevelChange)

// askLevelEvery is how often a server below that level is asked for it.
const askLevelEvery = time.Minute

// askLevel asks for the server's level if that is old. By HTTP each answer names it; over RESP only the greeting does,
// and a cluster may be upgraded under a connection that lasts. Levels never fall, so the newest is not asked for again.
func (w *wire) askLevel(token string) {
	if w.endpoint.level.Load() >= newestLevel {
		return
	}
	now, last := time.Now().UnixNano(), w.asked.Load()
	if now-last < int64(askLevelEvery) || !w.asked.CompareAndSwap(last, now) {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), readLimit)
		defer cancel()
		// What fails here is tried again in a minute.
		if conn, err := w.get(ctx, token, pipeline.Reads); err == nil {
			_ = conn.Do(ctx, pipeline.Request{Command: w.introduction(nil), Answer: levelAnswer{w}})
		}
	}()
}

// A levelAnswer takes the answer to LH.HELLO.
type levelAnswer struct{ wire *wire }

// Take notes the level.
func (a levelAnswer) Take(v *resp.Value) (bool, error) { return false, a.wire.introduced(v) }
