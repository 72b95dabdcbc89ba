-- Five keys for each id, and two arguments: the id and its resource.
local index, channel = KEYS[1], ARGV[1]
for i = 1, (#ARGV - 1) / 2 do
  local id, res = ARGV[2 * i], ARGV[2 * i + 1]
  local k = 5 * i - 3
  local key, mark, order = KEYS[k], KEYS[k + 1], KEYS[k + 2]
  local lease = redis.call('HMGET', key, 'id', 'deadline', 'how')
  local held = alive(lease)
  local own = held and lease[1] == id
  if own then
    redis.call('HSET', key, 'how', '1', 'at', stamp) -- RELEASED
    redis.call('SETRANGE', mark, '0', '1 ' .. stamp)
    held = false
  end
  if own and redis.call('EXISTS', order) == 0 then
    redis.call('ZREM', index, res)
  else
    --@ lease
    --@ marks
    --@ queue
    local queue = {order = order, deadlines = KEYS[k + 3], notes = KEYS[k + 4]}
    local m = not own and marked(mark)
    if not own and not m then
      -- A waiter, or an id that was never seen: the acquire that comes late finds the mark.
      local waited = redis.call('ZSCORE', order, id)
      local names = string.sub(cjson.encode({res, ''}), 2, -2)
      redis.call('SET', mark, newMark(ended(waited and WITHDRAWN or RELEASED), 0, 0, names), 'PXAT', cleaned(now))
      if waited then leave(queue, {id}) end
    elseif m and m[5] == res then
      -- It ended before. Remember how, from now on for as long as if it had ended now.
      redis.call('SETRANGE', mark, 0, string.format('%d %016.0f', m[1], m[2]))
      clean(mark, now)
    end
    if not held and not wake(queue, channel) then redis.call('ZREM', index, res) end
  end
end
return {now, 'released'}
