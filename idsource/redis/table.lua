-- Reads a pool, or sets a part of it if the server and the pool are as they were read.
-- KEYS: the pool (hash), its numbers (sorted set).
local pool, numbers = KEYS[1], KEYS[2]
local op = ARGV[1]

-- Another process or another history of data has another identity.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local history = string.match(redis.call('INFO', 'replication'), 'master_replid:(%w+)')
if not run or not history then return {'noserver'} end
local server = run .. '.' .. history

local function kept()
  local v = redis.call('HMGET', pool, 'shape', 'server', 'since')
  return v[1] or '', v[2] or '', v[3] or ''
end

if op == 'read' then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local shape, before, since = kept()
  local out = {server, string.format('%.0f', now), shape, before, since}
  local which = {ARGV[2]}
  if ARGV[2] == '-1' then which = redis.call('ZRANGE', numbers, 0, -1) end
  if ARGV[2] == '-2' then which = redis.call('ZREVRANGE', numbers, 0, 0) end
  for _, w in ipairs(which) do
    local text = redis.call('HGET', pool, 'w' .. w)
    if text then
      out[#out + 1] = w
      out[#out + 1] = text
    end
  end
  return out
end

local shape, before, since = kept()
if ARGV[2] ~= server or ARGV[3] ~= shape or ARGV[4] ~= before or ARGV[5] ~= since then return {'changed'} end

if op == 'pool' then
  redis.call('HSET', pool, 'shape', ARGV[6], 'server', ARGV[7], 'since', ARGV[8])
  return {'done'}
end

-- write: triples of a number, what it was, what it is to be
for i = 6, #ARGV, 3 do
  if (redis.call('HGET', pool, 'w' .. ARGV[i]) or '') ~= ARGV[i + 1] then return {'changed'} end
end
for i = 6, #ARGV, 3 do
  redis.call('HSET', pool, 'w' .. ARGV[i], ARGV[i + 2])
  redis.call('ZADD', numbers, ARGV[i], ARGV[i])
end
return {'done'}
