-- Says that no lease of this namespace can exist that the server does not know of.
--@ identity
if redis.call('EXISTS', KEYS[1]) == 1 then return {now, 'known'} end
redis.call('HSET', KEYS[1], 'last', 0, 'run', run, 'until', 0, 'longest', ARGV[1])
return {now, 'new'}
