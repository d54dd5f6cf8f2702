"""Import of jobs that clients of Sidekiq, exq and Resque push."""

from aioqless.contrib.foreign_queues.foreign_queues import ForeignImporter, ForeignQueues, Format

__all__ = ["ForeignImporter", "ForeignQueues", "Format"]
