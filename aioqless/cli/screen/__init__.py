"""The live screen of `aioqless top`.

terminal.py  keys in, restored when left
looking.py   what is seen of Redis, and how fast it changes
board.py     what is chosen, asked and told; what each key does
drawing.py   all of it as lines
"""

from aioqless.cli.screen.board import Board
from aioqless.cli.screen.drawing import drawn
from aioqless.cli.screen.looking import Looking, Seen
from aioqless.cli.screen.terminal import Keys, keys_of

__all__ = ["Board", "Keys", "Looking", "Seen", "drawn", "keys_of"]
