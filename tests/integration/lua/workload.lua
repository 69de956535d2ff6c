-- The main job's program: a bit of all that makes call stacks hard to follow, some seconds of it.
--
--   lua workload.lua [SIZE] [ROLE]
--
-- SIZE (default 20) scales the work; 1 is enough for a test. ROLE is given to the child processes
-- that it starts: "pipe" or "status". Prints one checksum that depends on SIZE only, so that a
-- traced run can be held against an untraced one. Call counts repeat exactly from run to run.

local size = math.tointeger(arg[1] or 20)
local role = arg[2] or "parent"
assert(size and size > 0, "SIZE is a whole number above 0")

local checksum = 17

--- Folds a number or string into the checksum.
local function fold(value)
  for i, byte in ipairs({ tostring(value):byte(1, -1) }) do
    checksum = (checksum * 31 + byte * i) % 0x7fffffff
  end
end

-- Plain recursion. The interpreter runs a Lua function that calls a Lua function in one C frame,
-- so the deep C stacks come from the sections that go through C: sort, gsub, pcall, load.
local function recursion()
  local function fib(n)
    return n < 2 and n or fib(n - 1) + fib(n - 2)
  end
  local function even(n)
    if n == 0 then return true end
    return not even(n - 1)
  end
  fold(fib(16))
  fold(tostring(even(150)))
end

-- Arithmetic in one frame: time, but no calls.
local function arithmetic()
  local x, inside = 1, 0
  for _ = 1, 5000000 do
    x = x * 1103515245 + 12345 & 0x7fffffff
    local a = x & 4095
    x = x * 1103515245 + 12345 & 0x7fffffff
    local b = x & 4095
    if a * a + b * b < 4096 * 4096 then inside = inside + 1 end
  end
  fold(inside)
end

local function closures()
  local function counter(step)
    local n = 0
    return function()
      n = n + step
      return n
    end
  end
  local total, counters = 0, {}
  for step = 1, 100 do counters[step] = counter(step) end
  for _ = 1, 10 do
    for step = 1, 100 do total = total + counters[step]() end
  end
  fold(total)
end

local function strings()
  local words = {}
  for i = 1, 300 do words[i] = string.format("%05d:%x", i * 7919 % 10007, i) end
  local text = table.concat(words, " ")
  fold(#text:rep(50))
  local swapped, count = text:gsub("(%d+):(%x+)", function(a, b) return b .. "=" .. a end)
  fold(swapped)
  fold(count)
  for word in text:gmatch("%d*1%d*:") do fold(#word) end
  fold(text:reverse():upper():find("F1", 1, true))
end

-- Sorting calls back from C into Lua, through metamethods in the second half.
local function sorting()
  local values, x = {}, 42
  for i = 1, 400 do
    x = (x * 16807) % 2147483647
    values[i] = x
  end
  table.sort(values, function(a, b) return a % 1000 < b % 1000 or (a % 1000 == b % 1000 and a < b) end)
  fold(values[1])
  fold(values[#values])

  local meta = {}
  meta.__lt = function(a, b) return a.key < b.key end
  meta.__index = function(_, name) return #name end
  local boxes = {}
  for i = 1, 100 do boxes[i] = setmetatable({ key = (i * 37) % 101 }, meta) end
  table.sort(boxes)
  fold(boxes[1].key + boxes[100].key + boxes[50].missing)
  while #values > 300 do table.remove(values, #values // 2) end
  fold(#values)
end

-- Coroutines: each resume starts a C frame of its own, each yield leaves one by longjmp.
local function coroutines()
  local function tree(depth)
    if depth == 0 then return nil end
    return { left = tree(depth - 1), depth = depth, right = tree(depth - 1) }
  end
  local function walk(node)
    if node then
      walk(node.left)
      coroutine.yield(node.depth)
      walk(node.right)
    end
  end
  local root, sum = tree(7), 0
  for depth in coroutine.wrap(function() walk(root) end) do sum = sum + depth end
  fold(sum)

  local function nested(level)
    return coroutine.wrap(function()
      if level > 0 then
        for value in nested(level - 1) do coroutine.yield(value + level) end
      else
        for value = 1, 5 do coroutine.yield(value) end
      end
    end)
  end
  for value in nested(10) do fold(value) end

  local failing = coroutine.create(function()
    local _ <close> = setmetatable({}, { __close = function() fold("closed") end })
    coroutine.yield(1)
    error("inside a coroutine", 0)
  end)
  coroutine.resume(failing)
  local ok, message = coroutine.resume(failing)
  fold(tostring(ok) .. message)
  coroutine.close(failing)
end

-- Errors: longjmp over C frames at every depth, caught in the middle, thrown again, handled.
local function errors()
  local function descend(depth, at)
    if depth == at then error({ depth = depth }) end
    -- C between the levels: gsub calls back, sort compares, pcall nests.
    if depth % 3 == 0 then
      ("x"):gsub("x", function() descend(depth + 1, at) end)
    elseif depth % 3 == 1 then
      table.sort({ 1, 2 }, function() descend(depth + 1, at) end)
    else
      local ok, problem = pcall(descend, depth + 1, at)
      if not ok and problem.depth % 2 == 0 then error(problem) end
      return problem and problem.depth
    end
  end
  for at = 1, 40 do
    local ok, problem = pcall(descend, 0, at)
    fold(tostring(ok) .. (type(problem) == "table" and problem.depth or tostring(problem)))
  end
  local _, handled = xpcall(function() return nil + 1 end, function(message)
    return message:match("attempt.*")
  end)
  fold(handled)
  local function endless() return ("x"):gsub("x", endless) end
  fold(tostring(pcall(endless))) -- until the interpreter's own limit of C frames
  fold(select("#", pcall(string.rep)))
end

-- The compiler: a recursive descent, deep in C.
local function compiling()
  local expression = "1"
  for i = 1, 60 do expression = "(" .. expression .. (i % 2 == 0 and "+" or "*") .. (i % 7) .. ")%9973" end
  fold(load("return " .. expression)())
  local chunk = {}
  for i = 1, 40 do chunk[i] = ("local function f%d(a) if a > %d then return a - 1 end return a end"):format(i, i) end
  local _, problem = load(table.concat(chunk, "\n") .. "\nreturn f1(")
  fold(problem:match("near.*"))
end

--- Runs this script with the same interpreter in a child process of the given role.
local function children()
  local command = ("%s %s %d "):format(arg[-1], arg[0], math.max(1, size // 10))
  local pipe <close> = assert(io.popen(command .. "pipe"))
  fold(pipe:read("a"))
  local _, how, status = os.execute(command .. "status")
  fold(how .. status)
end

for _ = 1, size do
  recursion()
  arithmetic()
  closures()
  strings()
  sorting()
  coroutines()
  errors()
  compiling()
end
if role == "parent" then
  children()
  print(("checksum %08x"):format(checksum))
elseif role == "pipe" then
  print(("%08x"):format(checksum))
else
  os.exit(checksum % 100) -- past every open frame, and without closing the state
end
