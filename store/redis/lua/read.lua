--@ lease
--@ queue
-- Four keys for each resource. The arguments are how many waiters to show, and the resources.
local index, shown = KEYS[1], tonumber(ARGV[1])
local answers = {}
for i = 2, #ARGV do
  local k = 4 * i - 6
  local key = KEYS[k]
  local queue = {order = KEYS[k + 1], deadlines = KEYS[k + 2], notes = KEYS[k + 3]}
  local lease = load(key)
  first(queue) -- only those that live are counted
  local waiting = redis.call('ZCARD', queue.order)
  local waiters = {}
  if shown > 0 and waiting > 0 then
    local order = redis.call('ZRANGE', queue.order, 0, shown - 1, 'WITHSCORES')
    for j = 1, #order, 2 do
      waiters[#waiters + 1] = {order[j], order[j + 1],
        redis.call('ZSCORE', queue.deadlines, order[j]), redis.call('HGET', queue.notes, order[j])}
    end
  end
  if not alive(lease) and waiting == 0 then redis.call('ZREM', index, ARGV[i]) end
  answers[#answers + 1] = {lease, alive(lease) and redis.call('HGET', key, 'value'), waiting, waiters}
end
return {now, 'resources', answers}
