--@ lease
--@ marks
--@ queue
local key, mark, index = KEYS[1], KEYS[2], KEYS[6]
local queue = {order = KEYS[3], deadlines = KEYS[4], notes = KEYS[5]}
local id, res, by, why, period, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]

local function names(holder)
  return string.sub(cjson.encode({res, holder, by, why}), 2, -2)
end

local lease = load(key)
if lease[1] == id and alive(lease) then
  -- It only ever gets shorter: a second break does not give time back.
  local broken = math.min(now + period, tonumber(lease[8] or math.huge))
  local head, holder = '0 0000000000000000', cjson.decode(lease[7]).holder
  if broken > now then
    lease[2] = math.min(tonumber(lease[2]), broken)
    redis.call('HSET', key, 'broken', broken, 'deadline', lease[2], 'by', by, 'why', why)
    lease[8] = broken
  else
    redis.call('HSET', key, 'how', BROKEN, 'at', now, 'by', by, 'why', why)
    head, lease[2], lease[3] = ended(BROKEN), now, BROKEN
  end
  clean(key, lease[2])
  redis.call('SET', mark, newMark(head, broken, lease[4], names(holder)), 'PXAT', cleaned(lease[2]))
  if not wake(queue, channel) and lease[3] then redis.call('ZREM', index, res) end
  return {now, 'broken', lease}
end
first(queue)
local note = redis.call('HGET', queue.notes, id)
if note then
  leave(queue, {id})
  redis.call('SET', mark, newMark(ended(BROKEN), 0, 0, names(cjson.decode(note).holder)), 'PXAT', cleaned(now))
  if not alive(lease) and not wake(queue, channel) then redis.call('ZREM', index, res) end
  return {now, 'left', note}
end
local m = marked(mark)
if m and m[5] == res then
  -- As when it is released again: replicas may lack the end, and WAIT waits for writes alone.
  redis.call('SETRANGE', mark, 0, string.format('%d %016.0f', m[1], m[2]))
  clean(mark, now)
  return {now, 'lost', m}
end
return {now, 'unknown'}
