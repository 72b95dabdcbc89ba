-- Every verb begins with this. All times are microseconds of the primary's clock.

-- Read once: in Redis 7.0 the time moves on while a script runs.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- How long an id that ended is remembered.
local KEEP = 600000000

-- The numbers of leasehold.How.
local RELEASED, EXPIRED, BROKEN, WITHDRAWN = 1, 2, 4, 8

-- cleaned is when Redis may delete a key that nobody needs any more. It decides nothing: what has ended
-- is judged by its own field.
local function cleaned(ended) return math.floor((ended + KEEP) / 1000) end

local function clean(key, ended) redis.call('PEXPIREAT', key, cleaned(ended)) end

-- identity returns the run_id of the server, which is another one after a restart or failover.
local function identity()
  local info = redis.call('INFO', 'server')
  local at = string.find(info, 'run_id:', 1, true)
  return string.sub(info, at + 7, at + 46)
end

-- load returns the newest lease of a resource, as Redis answers it.
local function load(key)
  return redis.call('HMGET', key,
    'id', 'deadline', 'how', 'token', 'ttl', 'acquired', 'note', 'broken', 'at', 'by', 'why')
end

local function alive(lease)
  return lease[1] and not lease[3] and tonumber(lease[2]) > now
end

-- A mark is a string: how and when the id ended, both 0 for a lease that nobody has ended; until when it
-- may be held at most, and its token; then, in JSON, its resource, its holder, who broke it and why. The
-- numbers have a fixed width, so that the end can be written over the beginning.
local function ended(how) return string.format('%d %016.0f', how, now) end

local function newMark(head, broken, token, names)
  return string.format('%s %016.0f %016.0f %s', head, broken, token, names)
end

-- marked returns {how, at, token, broken, resource, holder, by, why}; nil if the id was never used. If
-- the mark does not say how it ended, time has ended it. The mark is kept for as long as the lease and
-- KEEP, which says when that was.
local function marked(mark)
  local text = redis.call('GET', mark)
  if not text then return nil end
  local how, at, broken, token, names = string.match(text, '^(%d) (%d+) (%d+) (%d+) (.*)$')
  how, at, broken = tonumber(how), tonumber(at), tonumber(broken)
  names = cjson.decode('[' .. names .. ']')
  if how == 0 then
    at = now + redis.call('PTTL', mark) * 1000 - KEEP
    how = broken > 0 and at + 1000 >= broken and BROKEN or EXPIRED
  end
  return {how, at, tonumber(token), broken, names[1], names[2], names[3] or '', names[4] or ''}
end

-- leave takes waiters out of a queue.
local function leave(queue, ids)
  redis.call('ZREM', queue.order, unpack(ids))
  redis.call('ZREM', queue.deadlines, unpack(ids))
  redis.call('HDEL', queue.notes, unpack(ids))
end

-- first returns the waiter whose turn it is. Those that have not asked for their TTL are taken out.
local function first(queue)
  if redis.call('EXISTS', queue.order) == 0 then return nil end
  local dead = redis.call('ZRANGEBYSCORE', queue.deadlines, '-inf', now, 'LIMIT', 0, 1000)
  if #dead > 0 then leave(queue, dead) end
  return redis.call('ZRANGE', queue.order, 0, 0)[1]
end

-- wake tells the first waiter to ask again. It is a hint: a waiter that misses it asks by itself.
local function wake(queue, channel)
  local id = first(queue)
  if id then redis.pcall('PUBLISH', channel, id) end
  return id
end
