-- json_slices: parts of a JSON text, byte for byte. Decoding and encoding would turn 1.0 into 1 and
-- [] into {}.

-- The end of the string that begins at a quote.
function json_slices.find_string_end(text, quote)
  local at = quote + 1
  while true do
    at = string.find(text, '["\\]', at)
    if string.byte(text, at) == 34 then return at end
    at = at + 2
  end
end

-- The end of the value that begins at `first`.
function json_slices.find_value_end(text, first)
  local opening = string.sub(text, first, first)
  if opening == '"' then return json_slices.find_string_end(text, first) end
  if opening ~= '[' and opening ~= '{' then return string.find(text, '[,}%]%s]', first) - 1 end
  local at, depth = first, 0
  while true do
    at = string.find(text, '["%[%]{}]', at)
    local mark = string.sub(text, at, at)
    if mark == '"' then
      at = json_slices.find_string_end(text, at)
    elseif mark == '[' or mark == '{' then
      depth = depth + 1
    else
      depth = depth - 1
      if depth == 0 then return at end
    end
    at = at + 1
  end
end

-- The values of the wanted names of a valid JSON object; of a duplicate name the last, as parsers
-- do.
function json_slices.find_members(text, wanted)
  local found = {}
  local at = string.find(text, '"', 1, true)
  while at do
    local name_end = json_slices.find_string_end(text, at)
    local name = string.sub(text, at, name_end)
    if string.find(name, '\\', 1, true) then
      local valid, decoded = pcall(cjson.decode, '[' .. name .. ']')
      name = valid and '"' .. decoded[1] .. '"' or name
    end
    local first = string.find(text, '%S', string.find(text, ':', name_end, true) + 1)
    local last = json_slices.find_value_end(text, first)
    name = string.sub(name, 2, -2)
    if wanted[name] then found[name] = string.sub(text, first, last) end
    at = string.find(text, '"', last + 1, true)
  end
  return found
end

-- The item of a JSON list at an index from 0; nil beyond its end.
function json_slices.find_item(text, index)
  local at = string.find(text, '%S', string.find(text, '[', 1, true) + 1)
  while string.sub(text, at, at) ~= ']' do
    local last = json_slices.find_value_end(text, at)
    if index == 0 then return string.sub(text, at, last) end
    index, at = index - 1, string.find(text, '[^%s,]', last + 1)
  end
end

-- The text of the string, number, true, false or null at a path of names and indexes; nil if there
-- is none.
function json_slices.read_scalar(text, path)
  for _, name in ipairs(path) do
    local opening = string.match(text, '^%s*([%[{])')
    if opening == '{' then
      text = json_slices.find_members(text, {[name] = true})[name]
    else
      local index = opening and string.find(name, '^%d+$') and tonumber(name)
      text = index and json_slices.find_item(text, index)
    end
    if not text then return nil end
  end
  if string.find(text, '^[%[{]') then return nil end
  return string.sub(text, 1, 1) == '"' and cjson.decode('[' .. text .. ']')[1] or text
end
