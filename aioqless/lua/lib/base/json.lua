-- json: reliable encoding: empty lists stay `[]`, numbers keep all their digits.

-- Cached, since a batch formats most of its numbers many times.
function json.number(number)
  local texts = call.texts or {}
  call.texts = texts
  local text = texts[number]
  if not text then
    text = json.format_number(number)
    if number == number then texts[number] = text end
  end
  return text
end

function json.format_number(number)
  if number ~= number then return '0' end
  if number == math.huge then return '1e999' end
  if number == -math.huge then return '-1e999' end
  return string.format('%.17g', number)
end

-- Encode a list of texts.
function json.texts(list)
  if #list == 0 then return '[]' end
  return cjson.encode(list)
end

-- Join a list of JSON texts. The brackets go to the first and the last one, since Redis' Lua hashes
-- every byte of each string that a script makes.
function json.list(items)
  if #items == 0 then return '[]' end
  items[1] = '[' .. items[1]
  items[#items] = items[#items] .. ']'
  return table.concat(items, ',')
end

-- The text of a stored value that should be a string.
function json.to_text(value)
  return type(value) == 'string' and value or type(value) == 'number' and tostring(value) or ''
end

-- A stored list of strings, safe to embed; a peer's encoder may have written an empty one as `{}`.
-- Other values than strings are treated as in json.parse_texts.
function json.clean_list(text)
  if not text or not string.find(text, '^%s*%[') then return '[]' end
  return json.is_flat(text, 'string') and text or json.texts(json.parse_texts(text))
end

-- A stored object of strings and numbers, safe to embed; empty if it is anything else.
function json.clean_object(text)
  return string.find(text, '^%s*{') and json.is_flat(text, 'string', 'number') and text or '{}'
end

function json.is_flat(text, kind, other)
  local valid, values = pcall(cjson.decode, text)
  if not valid or type(values) ~= 'table' then return false end
  for _, value in pairs(values) do
    if type(value) ~= kind and type(value) ~= other or value ~= value then return false end
  end
  return true
end

-- The strings of a stored JSON list. Numbers become strings, as in keys; others are skipped.
function json.parse_texts(text)
  local texts = {}
  for _, value in ipairs(json.parse_list(text)) do
    if type(value) == 'string' or type(value) == 'number' then
      texts[#texts + 1] = json.to_text(value)
    end
  end
  return texts
end

-- The values of a stored JSON list; empty if it can't be parsed.
function json.parse_list(text)
  local valid, list = pcall(cjson.decode, text or '[]')
  if not valid or type(list) ~= 'table' then return {} end
  return list
end

function json.parse_object(text)
  local valid, object = pcall(cjson.decode, text or '{}')
  if not valid or type(object) ~= 'table' then return {} end
  return object
end

-- JSON allows `\ud800` without its other half, cjson doesn't.
function json.drop_surrogates(text)
  return (string.gsub(string.gsub(text, '\\\\', '__'), '\\u[dD][89a-fA-F]%x%x', '______'))
end
