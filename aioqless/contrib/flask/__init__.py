"""Flask: a client configured by the application, and a worker with its context around handlers.

Needs `aioqless[flask]`.

extension.py     Aioqless: the extension
app_context.py   the application's context around handlers
worker_group.py  the command `flask aioqless worker`
"""

from aioqless.errors import require_extra

with require_extra("flask"):
    from aioqless.contrib.flask.extension import Aioqless

__all__ = ["Aioqless"]
