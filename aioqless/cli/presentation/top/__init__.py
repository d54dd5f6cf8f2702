"""The live screen of `aioqless top`.

terminal.py  keys in, restored when left
looking.py   what is seen of Redis, and how fast it changes
board.py     what is chosen, asked and told; what each key does
drawing.py   all of it as lines
"""

from aioqless.cli.presentation.top.controller import Board
from aioqless.cli.presentation.top.sampler import Looking, Seen
from aioqless.cli.presentation.top.terminal import Keys, keys_of
from aioqless.cli.presentation.top.view import drawn

__all__ = ["Board", "Keys", "Looking", "Seen", "drawn", "keys_of"]
