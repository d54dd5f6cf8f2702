-- findings: the problems that a check found, and whether they were repaired.

function findings.begin(resolve)
  call.found, call.mended, call.resolving = {}, 0, resolve
end

function findings.is_resolving() return call.resolving and true end

-- Report a problem and, when resolving, repair it with `mend`. Without `mend` an operator has to.
function findings.add(problem, about, mend)
  about.problem, about.mended = problem, (call.resolving and mend) and true or false
  call.found[#call.found + 1] = about
  if about.mended then
    mend()
    call.mended = call.mended + 1
  end
end

function findings.reply(cursor, examined)
  local found = call.found
  for i, about in ipairs(found) do found[i] = cjson.encode(about) end
  return '{"cursor":' .. cjson.encode(cursor) .. ',"examined":' .. examined .. ',"found":'
    .. json.list(found) .. ',"mended":' .. call.mended .. '}'
end
