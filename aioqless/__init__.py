"""aioqless."""
