"""The command `aioqless api`."""
