"""How the state machine is called: a method for each Lua command, typed as its header says.

generated_commands.py  Store         a method for each command, generated from the headers
call.py                Call          a command with its arguments, encoded, to be awaited
script_store.py        ScriptStore   sends calls, again if they get no answer
run_lock.py            RunLock       for how long the calls of a handler are sent again
offline_store.py       OfflineStore  refuses them, where there is no connection
extension.py           ExtensionCommands  commands of an extension, which a store sends
command_header.py      Command       a command's signature, read from its file
script_composer.py     Script        built from a header, a body, and library functions
library_linker.py      Block         a function of a library, and which of them a script reaches
library_floors.py                    which libraries a library may use
inlining.py                          keys and short functions, written out where scripts use them
keys.py                Keys          the same keys for Python code that reads them without a script
"""

from aioqless.redis.connection import Reply
from aioqless.redis.encoding import Json
from aioqless.store.call import Call
from aioqless.store.extension import ExtensionCommands
from aioqless.store.generated_commands import (
    CompleteManyRow,
    HeartbeatManyRow,
    PopManyRow,
    PutFlowRow,
    PutManyRow,
    Store,
    TickRow,
)
from aioqless.store.keys import Keys
from aioqless.store.offline_store import OfflineStore
from aioqless.store.run_lock import RunLock, Unlimited, context_with, current_lock, end_run
from aioqless.store.script_store import ATTEMPTS, ScriptStore

__all__ = [
    "ATTEMPTS",
    "Call",
    "CompleteManyRow",
    "ExtensionCommands",
    "HeartbeatManyRow",
    "Json",
    "Keys",
    "OfflineStore",
    "PopManyRow",
    "PutFlowRow",
    "PutManyRow",
    "Reply",
    "RunLock",
    "ScriptStore",
    "Store",
    "TickRow",
    "Unlimited",
    "context_with",
    "current_lock",
    "end_run",
]
