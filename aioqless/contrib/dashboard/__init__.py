"""A dashboard in the browser, served by `aioqless web` or as a part of another app (aioqless[web]).

What is known of people:
    passwords.py   hashes of passwords
    access.py      Access: users and roles
    redaction.py   what of jobs' data is hidden
    trail.py       who did what

What pages are made of:
    sampler.py     how all queues are just now, looked at once for all
    bulk.py        what is done to many jobs, in steps
    board.py       these together

What a request is:
    asked.py       a page with its parameters, within limits
    guard.py       the door: who gets in, which changes count
    login.py       logging in and out

What is shown and done:
    pages/         what each address shows
    acts/          what can be done
    wording.py     numbers, times and events in words
    drawing/       pictures, as SVG
    templates/     the pages' HTML
    static/        stylesheet and script
    rendering.py   the three together: from what is asked to HTML

How it stays up to date:
    throttle.py    a connection whose callers take at most a share of Redis' time
    live.py        pages made anew, and sent to all who look

And the whole:
    notes.py       words for browsers
    dashboard.py   what one dashboard owns
    app.py         create_app: the routes
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.dashboard.access import Access, Identity, Role, User
    from aioqless.contrib.dashboard.app import create_app

__all__ = ["Access", "Identity", "Role", "User", "create_app"]
