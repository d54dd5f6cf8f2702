"""Import of jobs that clients of Sidekiq, exq and Resque push."""

from aioqless.contrib.foreign_queues.foreign_queues import Arrivals, Came, Format, Source

__all__ = ["Arrivals", "Came", "Format", "Source"]
