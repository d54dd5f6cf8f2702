-- findings: the problems that a check found, and whether they were repaired.

local found, mended, resolving = {}, 0, nil

function findings.begin(resolve) resolving = resolve end

function findings.is_resolving() return resolving and true end

-- Report a problem and, when resolving, repair it with `mend`. Without `mend` an operator has to.
function findings.add(problem, about, mend)
  about.problem, about.mended = problem, (resolving and mend) and true or false
  found[#found + 1] = about
  if about.mended then
    mend()
    mended = mended + 1
  end
end

function findings.reply(cursor, examined)
  for i, about in ipairs(found) do found[i] = cjson.encode(about) end
  return '{"cursor":' .. cjson.encode(cursor) .. ',"examined":' .. examined .. ',"found":'
    .. json.list(found) .. ',"mended":' .. mended .. '}'
end
