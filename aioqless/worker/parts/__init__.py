"""What runs beside a worker's jobs, until they have ended.

listener.py       Listener       ready work, lost locks, and commands of `client.workers`
scheduler.py      Scheduler      recurring jobs: declares them, puts those that cron says are due
registration.py   Registration   which queues it serves; warns of queues that no worker serves
stable_name.py    NameLease      a stable name, which one worker has at a time
memory_checks.py  ArchiveMonitor eviction policy of Redis; an archive without readers
"""
