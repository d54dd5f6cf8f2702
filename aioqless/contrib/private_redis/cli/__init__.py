"""The commands of the private Redis; `aioqless.cli.commands` loads them from here."""
