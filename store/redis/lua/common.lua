-- Every verb begins with this. All times are microseconds of the primary's clock. What not every call needs
-- is in other files, which a line that begins with --@ includes: to define a function costs time, too.

-- Read once: in Redis 7.0 the time moves on while a script runs.
local clock = redis.call('TIME')
-- The same as text: to write a number as text takes as long as a short command does.
local stamp = clock[1] .. string.sub('00000' .. clock[2], -6)
local now = tonumber(stamp)

-- How long an id that ended is remembered.
local KEEP = 600000000

-- The numbers of leasehold.How.
local RELEASED, EXPIRED, BROKEN, WITHDRAWN = 1, 2, 4, 8

-- cleaned is when Redis may delete a key that nobody needs any more. It decides nothing: what has ended
-- is judged by its own field.
local function cleaned(ended) return math.floor((ended + KEEP) / 1000) end

local function alive(lease)
  return lease[1] and not lease[3] and tonumber(lease[2]) > now
end
