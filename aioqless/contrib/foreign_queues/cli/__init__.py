"""The commands of importing jobs; `aioqless.cli.commands` loads them from here."""
