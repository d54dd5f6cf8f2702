"""Lua, as Python calls it: a command by the names of its arguments, its reply as its header says.

header.py     Command   a command's signature, read from its file
spelling.py             keys, written out where scripts use them
keys.py       Keys      the same keys for those in Python who read them without a script
libraries.py  Block     a function of a library, and which of them a text reaches
compose.py    Script    built from a header, a body, and the library functions that they reach
calls.py      Call      a command laid out to be sent, and how its reply is read
scripts.py    Scripts   sends commands, again where that is needed
"""

from aioqless.store.keys import Keys
from aioqless.store.scripts import ATTEMPTS, NoScripts, Scripts

__all__ = ["ATTEMPTS", "Keys", "NoScripts", "Scripts"]
