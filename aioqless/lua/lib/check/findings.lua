-- findings: what a check found wrong, and whether it was mended.

local found, mended, resolving = {}, 0, nil

function findings.begin(resolve) resolving = resolve end

function findings.is_resolving() return resolving and true end

-- `about` says where. `mend` makes it right; without one, somebody has to look at it.
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
  return '{"cursor":' .. cjson.encode(cursor) .. ',"examined":' .. examined .. ',"found":' .. json.list(found) .. ',"mended":' .. mended .. '}'
end
