-- The names of resources that may be held or waited for, in their order; or some of them by chance.
if ARGV[1] == 'some' then return {now, 'names', redis.call('ZRANDMEMBER', KEYS[1], ARGV[2])} end
return {now, 'names', redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[3])}
