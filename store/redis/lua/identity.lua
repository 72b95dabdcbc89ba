-- run is the run_id of the server, which is another one after a restart or failover.
local info = redis.call('INFO', 'server')
local at = string.find(info, 'run_id:', 1, true)
local run = string.sub(info, at + 7, at + 46)
