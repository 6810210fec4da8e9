-- The beginning of each action: what it needs to know of the object, and how it changes it.
local now = os.date("!%Y-%m-%dT%XZ")
local annotations = obj.metadata.annotations or {}
local state = ENTRY
if obj.status ~= nil and obj.status.lifecycle ~= nil then
  state = obj.status.lifecycle.state
end
local lifecycle = (obj.spec or {})[FIELD] or {}
local function annotate(name, value)
  annotations[name] = value
  obj.metadata.annotations = annotations
  return obj
end
local function ask(name, value)
  lifecycle[name] = value
  obj.spec = obj.spec or {}
  obj.spec[FIELD] = lifecycle
  return obj
end
