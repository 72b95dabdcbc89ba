-- Five keys for each id, and two arguments: the id and its resource.
local index, channel = KEYS[1], ARGV[1]
for i = 1, (#ARGV - 1) / 2 do
  local id, res = ARGV[2 * i], ARGV[2 * i + 1]
  local k = 5 * i - 3
  local key, mark = KEYS[k], KEYS[k + 1]
  local queue = {order = KEYS[k + 2], deadlines = KEYS[k + 3], notes = KEYS[k + 4]}
  local lease, m = load(key), marked(mark)
  if lease[1] == id and alive(lease) then
    finish(mark, key, RELEASED, '', '')
    lease[8] = RELEASED
  elseif not m[1] then
    -- A waiter, or an id that was never seen: the acquire that comes late finds the mark.
    local waited = redis.call('ZSCORE', queue.order, id)
    redis.call('HSET', mark, 'res', res)
    finish(mark, nil, waited and WITHDRAWN or RELEASED, '', '')
    if waited then leave(queue, {id}) end
  elseif m[1] == res then
    -- It ended before. Remember how, from now on for as long as if it had ended now.
    local e = ending(mark, m)
    redis.call('HSET', mark, 'how', e[1], 'at', e[2])
    clean(mark, now)
  end
  if not alive(lease) and not wake(queue, channel) then redis.call('ZREM', index, res) end
end
return {now, 'released'}
