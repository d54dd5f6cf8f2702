-- findings: the problems that a check found, and whether they were repaired.

function findings.begin(resolve)
  call.found, call.resolving = {}, resolve
end

function findings.is_resolving() return call.resolving and true end

-- Report a problem and, when resolving, repair it with `fix`. Without `fix` an operator has to.
function findings.add(problem, about, fix)
  about.problem, about.fixed = problem, (call.resolving and fix) and true or false
  call.found[#call.found + 1] = about
  if about.fixed then fix() end
end

-- Count a job that has a problem without a repair; `about` names one of them.
function findings.count(problem, about)
  for _, other in ipairs(call.found) do
    if other.problem == problem then
      other.jobs = other.jobs + 1
      return
    end
  end
  about.jobs = 1
  findings.add(problem, about)
end

function findings.reply(cursor, examined)
  local encoded, fixed = {}, 0
  for i, about in ipairs(call.found) do
    encoded[i] = cjson.encode(about)
    if about.fixed then fixed = fixed + 1 end
  end
  return '{"cursor":' .. cjson.encode(cursor) .. ',"examined":' .. examined .. ',"found":'
    .. json.list(encoded) .. ',"fixed":' .. fixed .. '}'
end
