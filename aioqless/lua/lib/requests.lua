-- requests: answer a repeated request with its first answer, since the caller may have lost the
-- reply (idempotency). A caller numbers its requests; only the latest of each line is stored, so
-- their number is bounded by that of the callers.

-- Whether this request was carried out before, and its answer.
function requests.find_answer(request)
  if not request then return false end
  local text = redis.call('GET', keys.request(request.id))
  if not text then return false end
  local number, answer = cmsgpack.unpack(text)
  if number == request.number then return true, answer end
  if number > request.number then
    errors.raise('REPEATED', 'a later request of the same line was already carried out', {
      request = request.id,
    })
  end
  return false
end

function requests.store_answer(request, answer)
  if not request then return end
  local packed = cmsgpack.pack(request.number, answer)
  redis.call('SET', keys.request(request.id), packed, 'EX', constants.ANSWER_TTL)
end
