package fence

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/peer"
)

// startRedis starts a server that syncs every write.
func startRedis(t *testing.T) *peer.Redis {
	t.Helper()
	return peer.StartRedis(t, peer.RedisConfig{Args: []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}})
}

func dial(t *testing.T, server *peer.Redis) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Address, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// guardOf is what a user of go-redis writes.
func guardOf(rdb *redis.Client) *fence.Redis {
	return fence.NewRedis(func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
		return rdb.Eval(ctx, script, keys, args...).Result()
	})
}

func TestRedis(t *testing.T) {
	server := startRedis(t)
	rdb := dial(t, server)
	guard := guardOf(rdb)
	t.Run("refuses who is late", func(t *testing.T) { redisRefuses(t, rdb, guard) })
	t.Run("refuses nonsense", func(t *testing.T) { redisRefusesNonsense(t, rdb, guard) })
	t.Run("runs scripts", func(t *testing.T) { redisRuns(t, guard) })
	t.Run("never goes back", func(t *testing.T) { redisNeverGoesBack(t, rdb, guard) })
	t.Run("remembers after kill", func(t *testing.T) { redisRemembers(t, server) })
}

func redisRefuses(t *testing.T, rdb *redis.Client, guard *fence.Redis) {
	for _, step := range []struct {
		resource     string
		token, floor leasehold.Token
		refused      leasehold.Token // the floor of the refusal
	}{
		{"a", 5, 0, 0},
		{"a", 5, 5, 0}, // the same holder again
		{"A", 3, 0, 0}, // another resource
		{"a", 4, 0, 5},
		{"a", 10, 0, 0}, // as numbers, not as text
		{"a", 9, 0, 10},
		{"a", 18, 16, 0}, // shared: 16 and 17 are alive too
		{"a", 16, 16, 0},
		{"a", 15, 15, 16},
		{"a", leasehold.MaxToken - 1, 0, 0}, // exact to the last digit
		{"a", leasehold.MaxToken - 2, 0, leasehold.MaxToken - 1},
		{"a", leasehold.MaxToken, 0, 0},
		{"a", leasehold.MaxToken - 1, 0, leasehold.MaxToken},
	} {
		value := number(step.token)
		err := guard.Set(t.Context(), step.resource, fence.Pass{Token: step.token, Floor: step.floor}, "data", value)
		var late *fence.LateError
		if errors.As(err, &late) != (step.refused != 0) || late == nil && err != nil ||
			late != nil && (late.Token != step.token || late.Floor != step.refused) {
			t.Errorf("%+v: %v", step, err)
		}
		if got, _ := rdb.Get(t.Context(), "data").Result(); (got == value) != (err == nil) {
			t.Errorf("%+v: the value is %s", step, got)
		}
	}
	for _, floor := range []string{"x", "", "nan", "-1"} {
		if err := rdb.Set(t.Context(), fence.RedisFloorKey("bad"), floor, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := guard.Set(t.Context(), "bad", fence.Pass{Token: 9}, "bad", 1); err == nil {
			t.Errorf("a damaged floor, %q, lets everybody in", floor)
		}
	}
}

// Programs in other languages call the script themselves, and may have an empty variable for a token:
// that writes nothing, and leaves no floor that would shut everybody out.
func redisRefusesNonsense(t *testing.T, rdb *redis.Client, guard *fence.Redis) {
	keys := []string{fence.RedisFloorKey("odd"), "odd"}
	for _, shown := range [][2]string{
		{"", ""}, {"5", ""}, {"0", "0"}, {"5", "0"}, {"5", "6"}, {"-5", "-5"}, {"nan", "nan"}, {"5\n7", "5\n7"},
		{"0x5", "0x5"}, {"9007199254740992", "5"}, {"1e3", "5"},
	} {
		if answer, err := rdb.Eval(t.Context(), fence.RedisSet, keys, shown[0], shown[1], "late").Result(); err == nil {
			t.Errorf("token %q and floor %q: %v", shown[0], shown[1], answer)
		}
	}
	if n, err := rdb.Exists(t.Context(), keys...).Result(); n != 0 || err != nil {
		t.Errorf("%d keys were written, %v", n, err)
	}
	if err := guard.Set(t.Context(), "odd", fence.Pass{Token: 1}, "odd", "x"); err != nil {
		t.Error(err)
	}
}

func redisRuns(t *testing.T, guard *fence.Redis) {
	const add = `local n = redis.call('INCRBY', KEYS[1], ARGV[1])
if n > 100 then return redis.error_reply('too many') end
return n`
	run := func(token leasehold.Token, by int) (any, error) {
		return guard.Run(t.Context(), "counter", fence.Pass{Token: token}, add, []string{"counter"}, by)
	}
	for _, want := range []int64{5, 10} {
		if got, err := run(2, 5); err != nil || got != want {
			t.Errorf("the script returned %v, %v; want %d", got, err, want)
		}
	}
	if _, err := run(1, 5); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("a late one: %v", err)
	}
	if got, err := run(2, 0); err != nil || got != int64(10) {
		t.Errorf("the late one has counted: %v, %v", got, err)
	}
	if got, err := run(2, 100); err == nil || errors.Is(err, leasehold.ErrLost) {
		t.Errorf("the error that a script returned: %v, %v", got, err)
	}
	nothing, err := guard.Run(t.Context(), "counter", fence.Pass{Token: 2}, "", nil)
	if nothing != nil || err != nil {
		t.Errorf("a script that returns nothing: %v, %v", nothing, err)
	}
}

// Many holders write at once, each with its own token: what is written never goes back.
func redisNeverGoesBack(t *testing.T, rdb *redis.Client, guard *fence.Redis) {
	const swap = `local before = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1])
return before`
	var wg sync.WaitGroup
	for token := leasehold.Token(1); token <= 200; token++ {
		wg.Go(func() {
			before, err := guard.Run(t.Context(), "written", fence.Pass{Token: token}, swap, []string{"written"},
				number(token))
			switch text, _ := before.(string); {
			case errors.Is(err, leasehold.ErrLost) || err == nil && text == "":
			case err != nil:
				t.Errorf("token %d: %v", token, err)
			default:
				if n, _ := strconv.ParseUint(text, 10, 64); leasehold.Token(n) > token {
					t.Errorf("token %d writes over %s", token, text)
				}
			}
		})
	}
	wg.Wait()
	if last, err := rdb.Get(t.Context(), "written").Result(); err != nil || last != "200" {
		t.Errorf("at last it is %s, %v", last, err)
	}
}

// The server is killed while somebody writes: what it has said yes to is there, and who was late
// before is late afterwards.
func redisRemembers(t *testing.T, server *peer.Redis) {
	writes, done := make(chan leasehold.Token, 1<<16), make(chan struct{})
	guard := guardOf(dial(t, server))
	go func() {
		defer close(done)
		for token := leasehold.Token(1000); ; token++ {
			if err := guard.Set(context.Background(), "killed", fence.Pass{Token: token}, "killed", number(token)); err != nil {
				return
			}
			writes <- token
		}
	}()
	var last leasehold.Token
	for range 100 {
		last = <-writes
	}
	server.Kill()
	<-done
	close(writes)
	for token := range writes {
		last = token
	}
	server.Restart()
	rdb := dial(t, server)
	text, err := rdb.Get(t.Context(), "killed").Result()
	if n, _ := strconv.ParseUint(text, 10, 64); err != nil || leasehold.Token(n) < last {
		t.Errorf("token %d was answered, and %s is there, %v", last, text, err)
	}
	guard = guardOf(rdb)
	if err := guard.Set(t.Context(), "killed", fence.Pass{Token: last - 1}, "killed", "late"); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("a late holder after the restart: %v", err)
	}
	if err := guard.Set(t.Context(), "killed", fence.Pass{Token: last + 2}, "killed", "next"); err != nil {
		t.Errorf("the next holder: %v", err)
	}
}
