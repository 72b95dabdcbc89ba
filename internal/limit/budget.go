package limit

import "sync"

// A Budget is an amount of something, such as bytes or places, that clients share. Each leaves a part of what it finds
// free: one that is alone can have up to Alone, and several that take all they get still leave some for the next one.
type Budget struct {
	Most  int // in all
	Alone int // that one client may have if there is no other

	mu   sync.Mutex // guards what follows
	used int
	by   map[string]int // by client
}

// Take takes a part for a client, and reports whether it got it. Give has to follow.
func (b *Budget) Take(client string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over(client, n, 0) {
		return false
	}
	b.add(client, n)
	return true
}

// Add counts what a client has already, whether or not that is too much: Over tells. Give has to follow.
func (b *Budget) Add(client string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(client, n)
}

// Over reports whether a client has more than its part, or all have more than there is, if there were so much more.
func (b *Budget) Over(client string, beyond int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over(client, 0, beyond)
}

// over is Over if the client had n more. A client may have up to Alone/(Most-Alone) times as much as is free.
func (b *Budget) over(client string, n, beyond int) bool {
	free := b.Most + beyond - b.used - n + 1
	return free <= 0 || uint64(max(0, b.by[client]+n-1))*uint64(b.Most-b.Alone) >= uint64(b.Alone)*uint64(free)
}

func (b *Budget) add(client string, n int) {
	if b.by == nil {
		b.by = map[string]int{}
	}
	b.used += n
	b.by[client] += n
}

// Give gives back what a client has taken, or a part of it.
func (b *Budget) Give(client string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.by[client] -= n; b.by[client] == 0 {
		delete(b.by, client)
	}
}

// Now returns how much is taken.
func (b *Budget) Now() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
