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
	if ctx.Err() != nil {
		return answer{}, failure(ctx.Err()) // else it may still be sent, now and then
	}
	sent := s.clock.Now()
	here := s.bound.Load().of(sc)
	message, err := s.send(ctx, sc, func(b rueidis.Builder) rueidis.Completed {
		return b.Evalsha().Sha1(here.hash).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	})
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		sent = s.clock.Now()
		message, err = s.sendText(ctx, sc, keys, args)
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

type (
	build  = func(rueidis.Builder) rueidis.Completed
	result struct {
		message rueidis.RedisMessage
		err     error
	}
)

func (s *Store) send(ctx context.Context, sc script, build build) (rueidis.RedisMessage, error) {
	if r, done := s.line.do(ctx, build); done {
		return r.message, r.err
	}
	return within(ctx, func() (rueidis.RedisMessage, error) {
		if !s.strict || !sc.durable {
			return s.client.Do(ctx, build(s.client.B())).ToMessage()
		}
		return s.dedicated(func(c rueidis.DedicatedClient) (rueidis.RedisMessage, error) {
			return s.sendStrict(ctx, c, build)
		})
	})
}

// sendText runs a script that the server does not have yet. One that is bound learns for which server on the
// connection on which it is then sent.
func (s *Store) sendText(ctx context.Context, sc script, keys, args []string) (rueidis.RedisMessage, error) {
	eval := func(text string) build {
		return func(b rueidis.Builder) rueidis.Completed {
			return b.Eval().Script(text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
		}
	}
	return within(ctx, func() (rueidis.RedisMessage, error) {
		return s.dedicated(func(c rueidis.DedicatedClient) (rueidis.RedisMessage, error) {
			text := sc.text
			if sc.bound {
				b, err := s.bindHere(ctx, c, keys[0])
				if err != nil {
					return rueidis.RedisMessage{}, err
				}
				text = b.of(sc).text
			}
			if s.strict && sc.durable {
				return s.sendStrict(ctx, c, eval(text))
			}
			return c.Do(ctx, eval(text)(c.B())).ToMessage()
		})
	})
}

// dedicated makes calls on one connection.
func (s *Store) dedicated(calls func(rueidis.DedicatedClient) (rueidis.RedisMessage, error)) (
	message rueidis.RedisMessage, err error,
) {
	err = s.client.Dedicated(func(c rueidis.DedicatedClient) (err error) {
		message, err = calls(c)
		return err
	})
	return message, err
}

// within ends with its context. On a shared connection the driver does not, while it connects: a call waits for the
// connection that another call makes, for as long as that one has time.
func within(ctx context.Context, call func() (rueidis.RedisMessage, error)) (rueidis.RedisMessage, error) {
	answered := make(chan result, 1)
	go func() {
		message, err := call()
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

// sendStrict runs a script, and returns once all replicas have what it did. WAIT covers what its own
// connection did before.
func (s *Store) sendStrict(ctx context.Context, c rueidis.DedicatedClient, build build) (rueidis.RedisMessage, error) {
	timeout := s.waitTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(time.Millisecond, min(timeout, time.Until(end)))
	}
	answers := c.DoMulti(ctx, build(c.B()),
		c.B().Wait().Numreplicas(int64(s.replicas)).Timeout(timeout.Milliseconds()).Build(),
		c.B().Info().Section("replication").Build())
	message, err := answers[0].ToMessage()
	if err != nil {
		return message, err
	}
	confirmed, err := answers[1].AsInt64()
	if err != nil {
		return message, undecided("Redis did not say how many replicas have the change: %v", err)
	}
	info, err := answers[2].ToString()
	if err != nil {
		return message, undecided("Redis did not say how many replicas it has: %v", err)
	}
	return message, s.confirmed(int(confirmed), info)
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
