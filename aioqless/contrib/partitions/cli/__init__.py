"""The commands of partitions; `aioqless.cli.commands` loads them from here."""
