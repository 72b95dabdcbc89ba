-- Every verb begins with this. All times are microseconds of the primary's clock.

-- Read once: in Redis 7.0 the time moves on while a script runs.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- How long an id that ended is remembered.
local KEEP = 600000000

-- The numbers of leasehold.How.
local RELEASED, EXPIRED, BROKEN, WITHDRAWN = 1, 2, 4, 8

-- clean lets Redis delete a key that nobody needs any more. It decides nothing: what has ended is
-- judged by its own field.
local function clean(key, ended)
  redis.call('PEXPIREAT', key, math.floor((ended + KEEP) / 1000))
end

-- load returns the newest lease of a resource, as Redis answers it.
local function load(key)
  return redis.call('HMGET', key,
    'id', 'deadline', 'token', 'ttl', 'acquired', 'note', 'broken', 'how', 'at', 'by', 'why')
end

local function alive(lease)
  return lease[1] and not lease[8] and tonumber(lease[2]) > now
end

-- finish writes how an id ended: on its mark, and on its lease if it had one.
local function finish(mark, lease, how, by, why)
  for _, key in ipairs(lease and {mark, lease} or {mark}) do
    redis.call('HSET', key, 'how', how, 'at', now, 'by', by, 'why', why)
    clean(key, now)
  end
end

-- ending returns how the id of a mark ended: {how, at, by, why, token, holder}; nil if the id was
-- never granted or ended. A mark that does not say how belongs to a lease that time has ended. The
-- mark is kept for as long as the lease and KEEP, which says when that was.
local function ending(mark, m)
  if not m[1] then return nil end
  local how, at = m[2], m[3]
  if not how then
    at = now + redis.call('PTTL', mark) * 1000 - KEEP
    how = EXPIRED
    if m[8] and at + 1000 >= tonumber(m[8]) then how = BROKEN end
  end
  return {how, at, m[4], m[5], m[6], m[7]}
end

local function marked(mark)
  return redis.call('HMGET', mark, 'res', 'how', 'at', 'by', 'why', 'token', 'holder', 'broken')
end

-- leave takes waiters out of a queue.
local function leave(queue, ids)
  redis.call('ZREM', queue.order, unpack(ids))
  redis.call('ZREM', queue.deadlines, unpack(ids))
  redis.call('HDEL', queue.notes, unpack(ids))
end

-- skip takes waiters out of a queue that have not asked for their TTL.
local function skip(queue)
  local dead = redis.call('ZRANGEBYSCORE', queue.deadlines, '-inf', now, 'LIMIT', 0, 1000)
  if #dead > 0 then leave(queue, dead) end
end

-- wake tells the first waiter to ask again. It is a hint: a waiter that misses it asks by itself.
local function wake(queue, channel)
  skip(queue)
  local first = redis.call('ZRANGE', queue.order, 0, 0)[1]
  if first then redis.pcall('PUBLISH', channel, first) end
  return first
end
