local health = { status = "Progressing", message = "the operator has not seen the object yet" }
if obj.status == nil or obj.status.conditions == nil then
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end
local function is(type, status)
  return conditions[type] ~= nil and conditions[type].status == status
end
local function say(status, condition)
  local message = condition.message
  if message == nil or message == "" then
    message = condition.reason
  end
  return { status = status, message = message }
end
-- A deletion that is stuck is shown as well.
if is("Stalled", "True") then
  return say("Degraded", conditions.Stalled)
end
if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "the object is being deleted" }
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the operator has not seen the last change yet" }
end
if is("Paused", "True") then
  return say("Suspended", conditions.Paused)
end
if is("Ready", "True") then
  return say("Healthy", conditions.Ready)
end
if is("Reconciling", "True") then
  return say("Progressing", conditions.Reconciling)
end
if conditions.Ready ~= nil then
  return say("Progressing", conditions.Ready)
end
return health
