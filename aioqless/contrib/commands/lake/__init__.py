"""The commands of `aioqless pipeline`."""
