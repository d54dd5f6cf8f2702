"""The command of the private Redis; `aioqless.cli.commands` loads it from here."""
