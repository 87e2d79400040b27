-- Health of the kinds of Keelson, from the conditions that they all report.
local function object(value)
  if type(value) == "table" then return value end
  return {}
end

local function told(condition)
  local text = condition.message
  if type(text) ~= "string" or text == "" then text = condition.reason end
  if type(text) ~= "string" then text = "" end
  return text
end

local status = object(obj.status)
local spec = object(obj.spec)
local observed = status.observedGeneration
if type(observed) ~= "number" or observed < 0 then
  return { status = "Progressing", message = "nothing has looked at it yet" }
end
if observed ~= object(obj.metadata).generation then
  return { status = "Progressing", message = "the newest change was not looked at yet" }
end

local conditions = {}
for _, condition in ipairs(object(status.conditions)) do
  if type(condition) == "table" and type(condition.type) == "string" then conditions[condition.type] = condition end
end

local progressing = object(conditions.Progressing)
local stopped = progressing.reason == "Paused" or progressing.reason == "ReleaseHeld"
if spec.paused == true or spec.suspend == true or (progressing.status == "False" and stopped) then
  return { status = "Suspended", message = told(progressing) }
end

local stalled = object(conditions.Stalled)
if stalled.status == "True" then return { status = "Degraded", message = told(stalled) } end

local ready = object(conditions.Ready)
if ready.status == "True" then return { status = "Healthy", message = told(ready) } end
if ready.status == "False" then return { status = "Degraded", message = told(ready) } end
return { status = "Progressing", message = told(ready) }
