"""Data of one version in Redis is processed by later versions."""
