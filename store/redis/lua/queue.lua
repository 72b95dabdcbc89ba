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
