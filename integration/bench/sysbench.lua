-- What sysbench runs here: each thread sends one statement again and again.
local ffi = require("ffi")
ffi.cdef [[
  struct bench_time { long seconds, nanoseconds; };
  int clock_gettime(int clock, struct bench_time *time);
  int usleep(unsigned int microseconds);
]]

sysbench.cmdline.options = {
  statement = {"file with the statement's text", ""},
  prepared = {"prepare it once; its values are those of a row of the benchmark", false},
  note = {"the last of these values", ""},
  clock = {"number of the clock on which Linux counts the processor time of the process that is measured; 0: none", 0},
}

-- The threads log in and leave while nobody reads the clock.
local quiet = 20000

local function processor_time()
  if sysbench.opt.clock == 0 then return 0 end
  local time = ffi.new("struct bench_time")
  if ffi.C.clock_gettime(sysbench.opt.clock, time) ~= 0 then error("the process that is measured has no clock") end
  return tonumber(time.seconds) * 1e9 + tonumber(time.nanoseconds)
end

function thread_init()
  local file = assert(io.open(sysbench.opt.statement))
  text = file:read("*a")
  file:close()
  connection = sysbench.sql.driver():connect()
  if sysbench.opt.prepared then
    statement = connection:prepare(text)
    local kind = sysbench.sql.type
    local customer, status = statement:bind_create(kind.INT), statement:bind_create(kind.VARCHAR, 16)
    local amount, note = statement:bind_create(kind.VARCHAR, 16), statement:bind_create(kind.VARCHAR, 300)
    statement:bind_param(customer, status, amount, note)
    customer:set(100000 + sysbench.tid)
    status:set("waiting")
    amount:set("199.99")
    note:set(sysbench.opt.note)
  end
  for _ = 1, 5 do event() end
  if sysbench.tid == 0 then
    ffi.C.usleep(2 * quiet)
    began = processor_time()
  end
end

function event()
  if statement then statement:execute() else connection:query(text) end
end

function thread_done()
  ffi.C.usleep(quiet)
  if sysbench.tid == 0 then
    print(string.format("processor time: %.0f ns", processor_time() - began))
  else
    ffi.C.usleep(quiet)
  end
end
