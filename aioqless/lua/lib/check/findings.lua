-- findings: the problems that a check found, and whether they were repaired.

function findings.begin(resolve)
  call.found, call.fixed, call.resolving, call.counted = {}, 0, resolve, {}
end

function findings.is_resolving() return call.resolving and true end

-- Report a problem and, when resolving, repair it with `fix`. Without `fix` an operator has to.
function findings.add(problem, about, fix)
  about.problem, about.fixed = problem, (call.resolving and fix) and true or false
  call.found[#call.found + 1] = about
  if about.fixed then
    fix()
    call.fixed = call.fixed + 1
  end
end

-- Count a job that has a problem without a repair; `about` names one of them.
function findings.count(problem, about)
  local counted = call.counted[problem] or about
  counted.problem, counted.fixed, counted.jobs = problem, false, (counted.jobs or 0) + 1
  call.counted[problem] = counted
end

function findings.reply(cursor, examined)
  local found = call.found
  for _, about in pairs(call.counted) do found[#found + 1] = about end
  for i, about in ipairs(found) do found[i] = cjson.encode(about) end
  return '{"cursor":' .. cjson.encode(cursor) .. ',"examined":' .. examined .. ',"found":'
    .. json.list(found) .. ',"fixed":' .. call.fixed .. '}'
end
