"""The commands of the outbox; `aioqless.cli.commands` loads them from here."""
