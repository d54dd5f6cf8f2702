"""The commands: modules of this folder, and of the folder `cli` of each extension.

An extension's command is imported as a module of this package, so that its extension is imported
when the command runs: the help lists it also where the extension's extra isn't installed.
"""

from pathlib import Path

__path__.extend(sorted(map(str, Path(__file__).parents[2].glob("contrib/*/cli"))))
