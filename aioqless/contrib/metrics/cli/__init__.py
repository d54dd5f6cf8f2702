"""The command that adds marks; `aioqless.cli.commands` loads it from here."""
