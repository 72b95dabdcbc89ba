local record, key, mark, order, index = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[7]
local id, res, wait, note, value, names = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local ttl, floor, longest = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local kept, look = ARGV[10], ARGV[11]

local lease = redis.call('HMGET', key, 'id', 'deadline', 'how')
local held = alive(lease)
local keepPlace, leavePlace -- of an id that is the first in the queue
if held or redis.call('EXISTS', mark, order) > 0 then -- one question, since mostly there is neither
  --@ lease
  --@ marks
  --@ queue
  if held and lease[1] == id then
    -- Nobody may know yet that replicas have the grant, and WAIT waits for writes alone.
    clean(key, tonumber(lease[2]))
    return {now, 'granted', load(key)}
  end
  local m = marked(mark)
  if m and m[5] ~= res then return {now, 'elsewhere'} end
  if m then return {now, 'lost', m} end

  local queue = {order = order, deadlines = KEYS[5], notes = KEYS[6]}
  local head = first(queue)
  -- Each question keeps the place of a waiter for another TTL.
  keepPlace = function()
    redis.call('ZADD', queue.deadlines, now + ttl, id)
    local latest = tonumber(redis.call('ZRANGE', queue.deadlines, -1, -1, 'WITHSCORES')[2])
    clean(order, latest)
    clean(queue.deadlines, latest)
    clean(queue.notes, latest)
  end
  if held or (head and head ~= id) then
    local place = redis.call('ZSCORE', order, id)
    if place or wait == '1' then
      if not place then
        if look == '1' then return {now, 'full'} end
        -- Behind the last one, even if the clock went back.
        local last = redis.call('ZRANGE', order, -1, -1, 'WITHSCORES')[2]
        redis.call('ZADD', order, math.max(now, tonumber(last or 0) + 1), id)
        redis.call('HSET', queue.notes, id, note)
        redis.call('ZADD', index, 0, res)
      end
      keepPlace()
    end
    local position = redis.call('ZRANK', order, id)
    return {now, 'held', position and position + 1 or 0, redis.call('ZCARD', order), held and load(key)}
  end
  if head then leavePlace = function() leave(queue, {id}) end end
end

-- It is free. Whether this server still has the memory of all earlier grants, its identity says. It is a part of
-- the script, which is other text on every server: see bind.
if look == '1' then return {now, 'full'} end
local r = redis.call('HMGET', record, 'last', 'run', 'until', 'longest')
local run = '@RUN@'
local known = tonumber(r[4] or 0)
longest = math.max(longest, known)
local quiet = tonumber(r[3] or 0)
if r[2] ~= run or quiet - now > longest then
  quiet = now + longest
  redis.call('HSET', record, 'run', run, 'until', quiet, 'longest', longest)
end
if quiet > now then
  if leavePlace then keepPlace() end
  return {now, 'quiet', quiet - now, r[2] and 1 or 0}
end

local last = tonumber(r[1] or 0)
local token = math.max(last + 1, now, floor + 1)
if token > 9007199254740991 then return {now, 'spent'} end
local number = token == now and stamp or string.format('%.0f', token)
redis.call('HSET', record, 'last', number)
if longest > known then redis.call('HSET', record, 'longest', longest) end
if lease[1] then redis.call('DEL', key) end -- the lease before it may have more fields
redis.call('HSET', key, 'id', id, 'deadline', string.format('%.0f', now + ttl), 'token', number, 'ttl', ARGV[7],
  'acquired', stamp, 'note', note, 'value', value)
redis.call('PEXPIRE', key, kept)
redis.call('SET', mark, '0 0000000000000000 0000000000000000 ' .. string.sub('000000000000000' .. number, -16) .. ' ' ..
  names, 'PX', kept)
redis.call('ZADD', index, '0', res)
if leavePlace then leavePlace() end
return {now, 'new', last < floor and 1 or 0, token} -- the caller knows the rest
