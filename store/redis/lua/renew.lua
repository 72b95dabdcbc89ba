--@ lease
--@ marks
-- Two keys for each id: its lease and its mark.
local answers = {}
for i, id in ipairs(ARGV) do
  local key, mark = KEYS[2 * i - 1], KEYS[2 * i]
  local lease = load(key)
  if lease[1] == id and alive(lease) then
    local deadline = now + tonumber(lease[5])
    if lease[8] then deadline = math.min(deadline, tonumber(lease[8])) end
    redis.call('HSET', key, 'deadline', deadline)
    clean(key, deadline)
    clean(mark, deadline)
    lease[2] = deadline
    answers[i] = {'renewed', lease}
  else
    answers[i] = {'ended', marked(mark) or false}
  end
end
return {now, 'answers', answers}
