"""The commands of the lake; `aioqless.cli.commands` loads them from here."""
