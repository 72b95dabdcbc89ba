local key, mark, index = KEYS[1], KEYS[2], KEYS[6]
local queue = {order = KEYS[3], deadlines = KEYS[4], notes = KEYS[5]}
local id, res, by, why, period, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]

local lease = load(key)
if lease[1] == id and alive(lease) then
  -- It only ever gets shorter: a second break does not give time back.
  local broken = math.min(now + period, tonumber(lease[7] or math.huge))
  if broken > now then
    lease[2] = math.min(tonumber(lease[2]), broken)
    redis.call('HSET', key, 'broken', broken, 'deadline', lease[2], 'by', by, 'why', why)
    redis.call('HSET', mark, 'broken', broken, 'by', by, 'why', why)
    clean(key, lease[2])
    clean(mark, lease[2])
    lease[7] = broken
  else
    finish(mark, key, BROKEN, by, why)
    lease[8] = BROKEN
  end
  if not wake(queue, channel) and lease[8] then redis.call('ZREM', index, res) end
  return {now, 'broken', lease}
end
skip(queue)
if redis.call('ZSCORE', queue.order, id) then
  local note = redis.call('HGET', queue.notes, id)
  leave(queue, {id})
  redis.call('HSET', mark, 'res', res)
  finish(mark, nil, BROKEN, by, why)
  if not alive(lease) and not wake(queue, channel) then redis.call('ZREM', index, res) end
  return {now, 'left', note}
end
local m = marked(mark)
if m[1] == res then return {now, 'lost', ending(mark, m)} end
return {now, 'unknown'}
