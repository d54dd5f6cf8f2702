"""The command that prints output; `aioqless.cli.commands` loads it from here."""
