-- requests: answer a repeated request with its first answer, since the caller may have lost the
-- reply (idempotency). A caller numbers its requests; only the latest of each line is stored, so
-- their number is bounded by that of the callers. The composer writes what reads and stores an
-- answer around the body of each command.

-- A request id is `line:number`: the caller's line of requests, and this one's number in it.
function requests.refuse_form(text)
  errors.bad_argument('request', text, 'must have the form line:number')
end

function requests.refuse(line)
  errors.raise('REPEATED', 'a later request of the same line was already carried out', {
    request = line,
  })
end

-- A request id belongs to one command, since an answer has that command's form.
function requests.refuse_command(text, command)
  errors.bad_argument('request', text, 'was already used for ' .. command)
end
