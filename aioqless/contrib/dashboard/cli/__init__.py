"""The commands of the dashboard; `aioqless.cli.commands` loads them from here."""
