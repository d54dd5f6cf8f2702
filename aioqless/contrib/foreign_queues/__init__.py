"""Import of jobs that clients of Sidekiq, exq and Resque push."""

from aioqless.contrib.foreign_queues.foreign_queues import ForeignQueues, Format, ImportLoop

__all__ = ["ForeignQueues", "Format", "ImportLoop"]
