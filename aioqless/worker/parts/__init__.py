"""What runs beside a worker's jobs, until they have ended.

listener.py       Listener       ready work, lost locks, and commands of `client.workers`
scheduler.py      Scheduler      recurring jobs: declares them, puts those that cron says are due
presence.py       Presence       beats: that it lives, its name, what it serves; who is gone
memory_checks.py  ArchiveMonitor eviction policy of Redis; an archive without readers
"""
