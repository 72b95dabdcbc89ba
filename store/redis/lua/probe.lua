-- Runs each command that the other scripts use on a key of its own, so that a missing permission is
-- found before the first lease and not in the middle of one.
local key, other = KEYS[1], KEYS[2]
local denied = {}
for _, c in ipairs({
  {'DEL', key}, {'DEL', other}, {'INFO', 'server'}, {'HSET', key, 'a', '1'}, {'HMGET', key, 'a'},
  {'HGET', key, 'a'}, {'HDEL', key, 'b'}, {'PEXPIREAT', key, math.floor(now / 1000) + 10000}, {'PTTL', key},
  {'EXISTS', key}, {'DEL', key}, {'SET', key, '0', 'PXAT', math.floor(now / 1000) + 10000}, {'SETRANGE', key, 0, '1'},
  {'GET', key}, {'ZADD', other, 0, 'a'}, {'PEXPIRE', other, 10000},
  {'PEXPIREAT', other, math.floor(now / 1000) + 10000},
  {'ZRANGE', other, 0, 0}, {'ZRANGEBYSCORE', other, 0, 0}, {'ZRANDMEMBER', other, 1}, {'ZRANK', other, 'a'},
  {'ZSCORE', other, 'a'}, {'ZCARD', other}, {'ZREM', other, 'a'}, {'PUBLISH', ARGV[1], ''}, {'DEL', key, other},
}) do
  local answer = redis.pcall(unpack(c))
  if type(answer) == 'table' and answer.err then denied[#denied + 1] = c[1] .. ': ' .. answer.err end
end
if #denied > 0 then return {now, 'denied', denied} end
--@ identity
return {now, 'run', run}
