-- layout: parse the arguments without a fixed position: words that choose a form, tails, batches,
-- options.

function layout.literal(word, value)
  if value ~= word then errors.bad_argument(word, value, 'must be the word ' .. word) end
end

function layout.word(known, default, value)
  local word = value or default
  if not word or not known[word] then
    local words = {}
    for name in pairs(known) do words[#words + 1] = name end
    table.sort(words)
    errors.bad_argument('command', value, 'must be one of ' .. table.concat(words, ', '))
  end
  return word
end

-- The tail of ARGV from `first`, up to its end or an empty argument, and where the next part
-- begins. With `options`, the tail may contain empty texts; an empty argument ends it if it is the
-- last one or only these options follow.
function layout.rest(name, check, first, options)
  local list, at = {}, first
  while args.is_given(ARGV[at])
    or options and ARGV[at + 1] and not (options[ARGV[at + 1]] and (#ARGV - at) % 2 == 0) do
    if #list == constants.MAX_BATCH then
      errors.bad_argument(name, nil,
        'has more than ' .. constants.MAX_BATCH .. ' entries; call again for the others')
    end
    list[#list + 1] = check(name, ARGV[at])
    at = at + 1
  end
  return list, at + 1
end

-- The end of a batch, and the number of arguments of each row. A batch begins with the number of
-- its rows, or with `rows/arguments` if all rows leave out the last of `most` arguments.
function layout.batch(first, least, most)
  local count, width = string.match(ARGV[first] or '', '^(%d+)/(%d+)$')
  count, width = tonumber(count or ARGV[first]), tonumber(width) or most
  if not count or count < 0 or count > constants.MAX_BATCH or count % 1 ~= 0
    or width < least or width > most
    or #ARGV < first + count * width or string.find(ARGV[first], '%z') then
    layout.refuse_batch(ARGV[first], count)
  end
  return first + 1 + count * width, width
end

function layout.refuse_batch(text, count)
  if not count or count % 1 ~= 0 or string.find(text, '%z') then args.count('count', text) end
  if count > constants.MAX_BATCH then
    errors.bad_argument('count', text,
      'is more than ' .. constants.MAX_BATCH .. '; call again for the others')
  end
  args.between('count', count, 0, constants.MAX_BATCH)
  errors.bad_argument('count', text, 'does not fit the number of arguments')
end

function layout.options(known, first)
  local options = {}
  if first <= #ARGV and (#ARGV - first) % 2 == 0 then
    errors.bad_argument('options', ARGV[#ARGV], 'must be pairs of a name and a value')
  end
  for i = first, #ARGV, 2 do
    if not known[ARGV[i]] then
      errors.bad_argument(ARGV[i], ARGV[i + 1], 'is not an option of this command')
    end
    options[ARGV[i]] = ARGV[i + 1]
  end
  return options
end

function layout.no_more(first)
  if #ARGV >= first then
    errors.bad_argument('arguments', ARGV[first], 'is an unexpected argument')
  end
end
