"""Commands that extensions add to the command line.

`aioqless --help` lists them also where an extra isn't installed, so they are not in the folders of
their extensions: those are imported when a command runs.
"""
