"""People's work over HTTP, in JSON, for pages of your own (`pip install "aioqless[web]"`).

shapes.py       what is sent and answered, as types
guard.py        Refused      what is checked before anything is done
operations.py   OPERATIONS   what can be asked
openapi.py      description  the same, for other tools
app.py          create_api   the application
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.human_tasks.api.app import Identify, create_api

__all__ = ["Identify", "create_api"]
