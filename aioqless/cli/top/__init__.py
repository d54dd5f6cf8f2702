"""The live screen of `aioqless top`.

terminal.py    reads keys, and restores the terminal
sampler.py     reads Redis, and computes rates
controller.py  the selection, and what each key does
view.py        renders the screen
"""

from aioqless.cli.top.controller import Controller
from aioqless.cli.top.sampler import Sampler, Snapshot
from aioqless.cli.top.terminal import Keys, parse_keys
from aioqless.cli.top.view import render

__all__ = ["Controller", "Keys", "Sampler", "Snapshot", "parse_keys", "render"]
