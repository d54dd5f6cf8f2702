"""Encryption and signing of job data."""

from aioqless.contrib.encryption.encryption import Encryption

__all__ = ["Encryption"]
