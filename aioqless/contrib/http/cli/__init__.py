"""The command `aioqless token`."""
