package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/redis/rueidis"
)

// An answer is what a script returned: the primary's time, a word, and what belongs to it.
type answer struct {
	now  int64 // µs
	word string
	rest []rueidis.RedisMessage
}

// call runs a script. If the server does not have it, because it was restarted, promoted or flushed,
// it is sent again with its text.
func (s *Store) call(ctx context.Context, sc script, keys []string, args ...string) (answer, error) {
	if s.closed.Load() {
		return answer{}, &leasehold.Error{Code: leasehold.Unavailable, Message: "the store is closed"}
	}
	sent := s.clock.Now()
	build := func(b rueidis.Builder) rueidis.Completed {
		return b.Evalsha().Sha1(sc.hash).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	}
	message, err := s.send(ctx, sc, build)
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		sent = s.clock.Now()
		message, err = s.send(ctx, sc, func(b rueidis.Builder) rueidis.Completed {
			return b.Eval().Script(sc.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
		})
	}
	if err != nil {
		return answer{}, failure(err)
	}
	a, err := parse(message)
	if err != nil {
		return a, err
	}
	s.observe(time.UnixMicro(a.now), sent, s.clock.Now())
	return a, nil
}

// send ends with its context. The driver does not, while it connects: a call waits for the connection that
// another call makes, for as long as that one has time.
func (s *Store) send(ctx context.Context, sc script, build func(rueidis.Builder) rueidis.Completed) (
	rueidis.RedisMessage, error,
) {
	type result struct {
		message rueidis.RedisMessage
		err     error
	}
	answered := make(chan result, 1)
	go func() {
		message, err := s.sendOnce(ctx, sc, build)
		answered <- result{message, err}
	}()
	select {
	case r := <-answered:
		return r.message, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-answered: // it ends by itself if it is connected
		return r.message, r.err
	case <-time.After(connectedGrace):
		return rueidis.RedisMessage{}, ctx.Err()
	}
}

const connectedGrace = 20 * time.Millisecond

func (s *Store) sendOnce(ctx context.Context, sc script, build func(rueidis.Builder) rueidis.Completed) (
	rueidis.RedisMessage, error,
) {
	if s.strict && sc.durable {
		return s.sendStrict(ctx, build)
	}
	return s.client.Do(ctx, build(s.client.B())).ToMessage()
}

// sendStrict runs a script, and returns once all replicas have what it did. WAIT covers what its own
// connection did before, so both go through one.
func (s *Store) sendStrict(ctx context.Context, build func(rueidis.Builder) rueidis.Completed) (
	message rueidis.RedisMessage, err error,
) {
	timeout := s.waitTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(time.Millisecond, min(timeout, time.Until(end)))
	}
	err = s.client.Dedicated(func(c rueidis.DedicatedClient) error {
		answers := c.DoMulti(ctx, build(c.B()),
			c.B().Wait().Numreplicas(int64(s.replicas)).Timeout(timeout.Milliseconds()).Build(),
			c.B().Info().Section("replication").Build())
		var err error
		if message, err = answers[0].ToMessage(); err != nil {
			return err
		}
		confirmed, err := answers[1].AsInt64()
		if err != nil {
			return undecided("Redis did not say how many replicas have the change: %v", err)
		}
		info, err := answers[2].ToString()
		if err != nil {
			return undecided("Redis did not say how many replicas it has: %v", err)
		}
		return s.confirmed(int(confirmed), info)
	})
	return message, err
}

// confirmed judges an answer to WAIT. If there are more replicas than the configuration says, the one
// that lacks the change could be promoted.
func (s *Store) confirmed(n int, info string) error {
	if have, _ := strconv.Atoi(field(info, "connected_slaves")); have > s.replicas {
		return undecided("Redis has %d replicas and replicas=%d: strict mode must wait for every one that can be "+
			"promoted; set replicas=%d", have, s.replicas, have)
	}
	if n < s.replicas {
		return undecided("only %d of %d replicas have confirmed the change", n, s.replicas)
	}
	return nil
}

// field returns a value of an answer to INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func parse(m rueidis.RedisMessage) (a answer, err error) {
	parts, err := m.ToArray()
	if err != nil || len(parts) < 2 {
		return a, undecided("Redis gave an answer that is not one of leasehold's: " +
			"does another program write keys with its prefix?")
	}
	if a.now, err = parts[0].AsInt64(); err != nil {
		return a, undecided("Redis gave an answer without its time: %v", err)
	}
	a.word, err = parts[1].ToString()
	a.rest = parts[2:]
	return a, err
}

// observe compares the primary's clock with ours.
func (s *Store) observe(reading time.Time, sent, answered time.Duration) {
	if step := s.steps.Observe(reading, sent, answered); step != 0 {
		s.log.Warn("the clock of Redis has stepped: leases may have ended too early or too late",
			"step", step, "namespace", s.namespace)
	}
}

func number(m rueidis.RedisMessage) int64 {
	n, err := m.AsInt64()
	if err == nil {
		return n
	}
	// The score of a sorted set may come as 1.7e+15.
	f, _ := m.AsFloat64()
	return int64(f)
}

func text(m rueidis.RedisMessage) string {
	s, _ := m.ToString()
	return s
}

func list(m rueidis.RedisMessage) []rueidis.RedisMessage {
	l, _ := m.ToArray()
	return l
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func undecided(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Undecided, Message: fmt.Sprintf(format, args...)}
}
