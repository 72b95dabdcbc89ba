package fence

import (
	"context"
	"fmt"
	"strconv"

	"github.com/leasehold/leasehold"
)

// Eval runs a Lua script on a Redis server, as the command EVAL does, and returns its answer. Every
// client library has a function for it; with go-redis:
//
//	func(ctx context.Context, script string, keys []string, args ...any) (any, error) {
//		return rdb.Eval(ctx, script, keys, args...).Result()
//	}
type Eval func(ctx context.Context, script string, keys []string, args ...any) (any, error)

// Redis guards what a Redis server keeps. The check and the write are one script, which Redis runs
// as a whole: no write of an older holder comes after one of a newer. It works with Valkey too.
//
// The floor of a resource is a key beside the data. It is as durable as the data: a Redis that
// loses writes in a failover, or evicts keys without a TTL, can lose floors with them.
//
// It is not a [Guard]: Redis cannot keep a newer holder out while an older one does something
// elsewhere.
type Redis struct{ eval Eval }

// NewRedis returns a guard for the server on which eval runs scripts.
func NewRedis(eval Eval) *Redis { return &Redis{eval} }

// redisCheck ends a script if the token is late, and raises the floor otherwise. Tokens are compared
// as numbers, which are exact below 2^53, and stored as the text they came in: Lua would
// write a large number with 14 digits. What is no token is an error before it can become a floor:
// programs in other languages may show an empty variable.
const redisCheck = `local function natural(text) return string.match(text or '', '^%d+$') and tonumber(text) end
local token, floor = natural(ARGV[1]), natural(ARGV[2])
if not token or not floor or floor < 1 or floor > token or token > 9007199254740991 then
	return redis.error_reply('ERR token and floor must be whole numbers, 1 <= floor <= token < 2^53')
end
local seen = redis.call('GET', KEYS[1])
if seen and not natural(seen) then return redis.error_reply('ERR the key ' .. KEYS[1] .. ' is not a floor') end
if seen and token < tonumber(seen) then return {'late', seen} end
if not seen or floor > tonumber(seen) then redis.call('SET', KEYS[1], ARGV[2]) end
`

// RedisSet is a script that sets a key unless the holder is late, for programs in other languages.
// KEYS are the key of the floor, as RedisFloorKey returns it, and the key to set; ARGV are token,
// floor and value. It returns {'done'}, or {'late', floor}.
const RedisSet = redisCheck + `redis.call('SET', KEYS[2], ARGV[3])
return {'done'}`

// redisBefore and redisAfter hide from the caller's script that there are other keys and arguments.
const redisBefore = redisCheck + `local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
local function write(KEYS, ARGV)
`

const redisAfter = `
end
return {'done', write(keys, args)}`

// RedisFloorKey returns the key of a resource's floor. In a Redis Cluster the keys of one script
// must be in one slot: give those that you write the hash tag {resource}.
func RedisFloorKey(resource string) string { return "leasehold:fence:{" + resource + "}" }

// Set sets a key unless the holder is late. The error is a *LateError if it is.
func (r *Redis) Set(ctx context.Context, resource string, pass Pass, key string, value any) error {
	_, err := r.ask(ctx, RedisSet, resource, pass, []string{key}, value)
	return err
}

// Run runs a script of your own unless the holder is late, and returns what it returns. In the
// script, KEYS and ARGV are the keys and args of this call. If it fails half-way, what it wrote
// remains, as with any script of Redis.
func (r *Redis) Run(ctx context.Context, resource string, pass Pass, script string, keys []string,
	args ...any) (any, error) {
	return r.ask(ctx, redisBefore+script+redisAfter, resource, pass, keys, args...)
}

func (r *Redis) ask(ctx context.Context, script, resource string, pass Pass, keys []string, args ...any) (any, error) {
	if err := pass.check(resource, 0); err != nil {
		return nil, err
	}
	answer, err := r.eval(ctx, script, append([]string{RedisFloorKey(resource)}, keys...),
		append([]any{decimal(pass.Token), decimal(pass.floor())}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	list, _ := answer.([]any)
	switch {
	case len(list) > 0 && redisText(list[0]) == "done":
		result := append(list, nil)[1]
		// An error that the caller's script returned, and did not raise, is inside of the list.
		if err, failed := result.(error); failed {
			return nil, fmt.Errorf("fence: %w", err)
		}
		return result, nil
	case len(list) == 2 && redisText(list[0]) == "late":
		floor, err := strconv.ParseUint(redisText(list[1]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("fence: the key %s is not a floor: %w", RedisFloorKey(resource), err)
		}
		return nil, &LateError{resource, pass.Token, leasehold.Token(floor)}
	}
	return nil, fmt.Errorf("fence: the script answered %v, and not done or late", answer)
}

// redisText returns a text as client libraries do: some as bytes.
func redisText(answer any) string {
	switch v := answer.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func decimal(t leasehold.Token) string { return strconv.FormatUint(uint64(t), 10) }
