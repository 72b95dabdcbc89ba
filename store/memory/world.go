package memory

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/memory"
)

// A world is what all handles on one store share.
type world struct {
	name   string // empty: nobody can find it
	engine *memory.Engine
	floor  leasehold.Token // that was given by the worlds of this name before it

	handles int // guarded by worlds.mu
}

// worlds are the ones that have a name. One that nobody has open is dropped as soon as nothing is
// alive in it. It does no work until then: an engine has a timer, and no goroutine.
var worlds = struct {
	mu    sync.Mutex // guards what follows
	named map[string]*world
	floor leasehold.Token // the largest token of all that were dropped
}{named: map[string]*world{}}

// enter returns the world that a configuration names.
func enter(c Config) *world {
	worlds.mu.Lock()
	defer worlds.mu.Unlock()
	if w := worlds.named[c.Name]; w != nil {
		w.handles++
		return w
	}
	var time engine.Clock = engine.NewGoClock()
	if c.Clock != nil {
		time = clock{c.Clock}
	}
	w := &world{name: c.Name, engine: memory.StartSilent(time), handles: 1}
	if c.Name != "" {
		w.floor = worlds.floor
		worlds.named[c.Name] = w
	}
	return w
}

func (w *world) join() {
	worlds.mu.Lock()
	defer worlds.mu.Unlock()
	w.handles++
}

// leave ends the world with its last handle, unless somebody may open it again and find something
// that is alive. Its tokens are remembered either way: they only grow.
func (w *world) leave() error {
	worlds.mu.Lock()
	defer worlds.mu.Unlock()
	if w.handles--; w.handles > 0 || w.name != "" && w.alive() {
		return nil
	}
	if w.name != "" {
		worlds.floor = max(worlds.floor, w.newest())
		delete(worlds.named, w.name)
	}
	return w.engine.Close()
}

// alive reports whether there is anything that a later handle would miss.
func (w *world) alive() (alive bool) {
	_ = w.engine.Read(context.Background(), func(v core.View) {
		n := v.Counts()
		alive = n.Leases+n.Waiters+n.Sessions+n.Records > 0
		for _, namespace := range v.Namespaces() {
			definitions, _ := v.Definitions(namespace, "", "", 1)
			alive = alive || len(definitions) > 0
		}
	})
	return alive
}

func (w *world) newest() (token leasehold.Token) {
	_ = w.engine.Read(context.Background(), func(v core.View) { token = v.NewestToken() })
	return token
}
