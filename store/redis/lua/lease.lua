-- load returns the newest lease of a resource, as Redis answers it.
local function load(key)
  return redis.call('HMGET', key,
    'id', 'deadline', 'how', 'token', 'ttl', 'acquired', 'note', 'broken', 'at', 'by', 'why')
end

local function clean(key, ended) redis.call('PEXPIREAT', key, cleaned(ended)) end
