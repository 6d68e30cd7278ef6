-- One step on a pool of worker numbers; package lease has the rules in Go.
-- KEYS: the pool (hash), its free numbers by their fences, its held ones by the last heartbeat (sorted sets).
local pool, free, held = KEYS[1], KEYS[2], KEYS[3]
local op, shape, worker, token, label = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local last = tonumber(ARGV[6])
local gap, lead, ahead, reclaim, quarantine = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local flag = ARGV[12] -- take: queue, reclaim or spare; add: fresh or grow
local beat, skew = tonumber(ARGV[13]), tonumber(ARGV[14])
local FREE, HELD, DROPPED = 1, 2, 3

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local resting = 0 -- for how long the pool rests yet
local function int(n) return string.format('%.0f', n) end
local function answer(verdict, w, start, fence, wait, why)
  return {verdict, w or '0', int(start or 0), int(fence or 0), int(now), int(wait or 0), why or '', int(math.max(0, resting))}
end

local function get(w)
  local text = redis.call('HGET', pool, 'w' .. w)
  if not text then return nil end
  local state, tok, beat, start, fence, lab = string.match(text, '^(%d+)|([^|]*)|(%-?%d+)|(%-?%d+)|(%-?%d+)|(.*)$')
  if not state then return nil end
  return {state = tonumber(state), token = tok, beat = tonumber(beat), start = tonumber(start), fence = tonumber(fence), label = lab}
end

local function put(w, r)
  redis.call('HSET', pool, 'w' .. w, r.state .. '|' .. r.token .. '|' .. int(r.beat) .. '|' .. int(r.start) .. '|' .. int(r.fence) .. '|' .. r.label)
  redis.call('ZREM', r.state == FREE and held or free, w)
  if r.state == DROPPED then
    redis.call('ZREM', held, w)
  else
    redis.call('ZADD', r.state == FREE and free or held, int(r.state == FREE and r.fence or r.beat), w)
  end
end

-- Another process or another history of data has another identity.
local function server()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
  return run and history and run .. '.' .. history
end

-- A server that is not the one from before may have forgotten any part of the past.
local function visit()
  local id = server()
  if not id then return nil end
  if redis.call('HGET', pool, 'server') ~= id then
    redis.call('HSET', pool, 'server', id, 'since', int(now))
  end
  return id
end

if op == 'add' then
  local id = server()
  if not id then return answer('noserver') end
  local stored = redis.call('HGET', pool, 'shape')
  if stored and stored ~= shape then return answer('othershape', nil, 0, 0, 0, stored) end
  if not stored then
    redis.call('DEL', pool, free, held)
    redis.call('HSET', pool, 'shape', shape, 'server', id, 'since', int(flag == 'fresh' and now - quarantine or now))
  end
  local added = 0
  for w = 0, tonumber(worker) - 1 do
    local n = int(w)
    local r = get(n)
    if not r then
      put(n, {state = FREE, token = '', beat = now, start = 0, fence = 0, label = ''})
      added = added + 1
    elseif flag == 'grow' then -- what is there stays as it is
    elseif r.state == DROPPED then
      r.state, r.beat = FREE, now
      put(n, r)
      added = added + 1
    else
      put(n, r) -- mends the indexes
    end
  end
  return answer('granted', int(added))
end

local stored = redis.call('HGET', pool, 'shape')
if not stored then return answer('nopool') end
if op ~= 'drop' and stored ~= shape then return answer('othershape', nil, 0, 0, 0, stored) end

if op == 'drop' then
  local r = get(worker)
  if not r or r.state ~= FREE then return answer('gone') end
  r.state = DROPPED
  put(worker, r)
  return answer('granted', worker)
end

if not visit() then return answer('noserver') end

local r = op ~= 'take' and get(worker)
local holds = r and r.state == HELD
local mine = holds and r.token == token
-- What a holder asks for shows whether the store forgot.
if op ~= 'take' and (mine and r.beat < beat or not mine and now - beat < reclaim - skew) then
  redis.call('HSET', pool, 'since', int(now))
end
resting = tonumber(redis.call('HGET', pool, 'since')) + quarantine - now

if op ~= 'take' then
  if not holds then return answer('gone') end
  if not mine then return answer('stolen') end
  if op == 'release' then
    r.state, r.token, r.beat, r.fence = FREE, '', now, math.max(r.start, last + 1)
    put(worker, r)
    return answer('granted', worker, r.start, r.fence)
  end
  if now - r.beat > gap then
    local first = math.max(r.start, last + 1)
    if resting > 0 and now - beat >= reclaim - skew or first > now + lead - 1 then return answer('late') end
    r.start, r.beat, r.fence = math.max(first, now), now, math.max(r.fence, now + lead)
    put(worker, r)
    return answer('anew', worker, r.start, r.fence)
  end
  r.beat = now
  r.fence = math.max(r.fence, math.max(now, math.min(last, now + ahead)) + lead)
  put(worker, r)
  return answer('granted', worker, r.start, r.fence)
end

-- take
if resting > 0 then
  return answer('wait', nil, 0, 0, resting, 'the pool was made anew, its server restarted or was replaced, or it forgot a holder')
end

local function give(w, r)
  local start = math.max(r.fence, now)
  put(w, {state = HELD, token = token, beat = now, start = start, fence = now + lead, label = label})
  return answer('granted', w, start, now + lead)
end

-- For how long nobody may take a number.
local function wait(r)
  local n = r.fence - (now + lead) + 1
  if r.state == HELD then n = math.max(n, r.beat + reclaim - now) end
  return math.max(0, n)
end

-- The first number of an index. Where the index is wrong it is mended: in one of an earlier version free numbers are by
-- the time they became free.
local function first(index, state, by)
  while true do
    local entry = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
    local w, score = entry[1], tonumber(entry[2])
    if not w then return nil end
    local r = get(w)
    if not r or r.state ~= state then
      redis.call('ZREM', index, w)
    elseif r[by] ~= score then
      redis.call('ZADD', index, int(r[by]), w)
    else
      return w, r
    end
  end
end

if flag == 'spare' and redis.call('ZCARD', free) <= redis.call('ZCARD', held) then return answer('empty') end

-- The free number whose timestamps ended first.
local w, r = first(free, FREE, 'fence')
if w and wait(r) == 0 then return give(w, r) end
local why = w and 'free numbers were used with a clock that was ahead of this one, the nearest one, ' .. w .. ', by ' .. int(r.fence - now) .. ' ms'
if flag ~= 'reclaim' then return answer('empty', w, 0, 0, 0, why) end

-- The one that has been silent for longest, of those that can be used.
local skip = 0
while true do
  local silent = redis.call('ZRANGEBYSCORE', held, '-inf', int(now - reclaim), 'LIMIT', skip, 32)
  if #silent == 0 then break end
  for _, s in ipairs(silent) do
    local q = get(s)
    if not q or q.state ~= HELD then
      redis.call('ZREM', held, s)
    elseif wait(q) == 0 then
      return give(s, q)
    else
      skip = skip + 1
    end
  end
end

-- None. Which one will be the next?
local h, q = first(held, HELD, 'beat')
if h and (not w or wait(q) < wait(r)) then
  w, r = h, q
  why = 'all numbers are held, the oldest one, ' .. h .. ', has been silent for ' .. int(now - q.beat) .. ' ms'
end
if not w then return answer('empty') end
return answer('wait', w, 0, 0, wait(r), why)
