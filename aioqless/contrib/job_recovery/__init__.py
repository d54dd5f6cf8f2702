"""Jobs of killed workers of this machine run again within seconds, not when their locks expire.

job_recovery.py    JobRecovery   gives back the jobs of workers whose process has ended
process_files.py   ProcessFile   locked files, which show which processes have ended
"""

from aioqless.contrib.job_recovery.job_recovery import JobRecovery

__all__ = ["JobRecovery"]
