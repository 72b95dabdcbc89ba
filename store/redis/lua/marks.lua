-- A mark is a string: how and when the id ended, both 0 for a lease that nobody has ended; until when it
-- may be held at most, and its token; then, in JSON, its resource, its holder, who broke it and why. The
-- numbers have a fixed width, so that the end can be written over the beginning.
local function ended(how) return string.format('%d %016.0f', how, now) end

local function newMark(head, broken, token, names)
  return string.format('%s %016.0f %016.0f %s', head, broken, token, names)
end

-- marked returns {how, at, token, broken, resource, holder, by, why}; nil if the id was never used. If
-- the mark does not say how it ended, time has ended it. The mark is kept for as long as the lease and
-- KEEP, which says when that was.
local function marked(mark)
  local text = redis.call('GET', mark)
  if not text then return nil end
  local how, at, broken, token, names = string.match(text, '^(%d) (%d+) (%d+) (%d+) (.*)$')
  how, at, broken = tonumber(how), tonumber(at), tonumber(broken)
  names = cjson.decode('[' .. names .. ']')
  if how == 0 then
    at = now + redis.call('PTTL', mark) * 1000 - KEEP
    how = broken > 0 and at + 1000 >= broken and BROKEN or EXPIRED
  end
  return {how, at, tonumber(token), broken, names[1], names[2], names[3] or '', names[4] or ''}
end
