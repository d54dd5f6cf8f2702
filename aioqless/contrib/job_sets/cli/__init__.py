"""The command that shows job sets; `aioqless.cli.commands` loads it from here."""
