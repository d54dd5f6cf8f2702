"""Encryption and signing of job data."""

from aioqless.contrib.encryption.encryption import Seal, opened, opened_result

__all__ = ["Seal", "opened", "opened_result"]
