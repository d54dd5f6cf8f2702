"""The commands of the live screen; `aioqless.cli.commands` loads them from here."""
