"""Migrations of the table of the outbox."""
