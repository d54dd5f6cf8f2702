"""A dashboard in the browser, served by `aioqless web` or mounted in another app (aioqless[web]).

Users, whom contrib/http identifies:
    login.py                 logging in with a token, and out
    audit_log.py             which user did what
    generated_commands.py    its scripts, in lua/
    redaction.py             hides secrets in the data of jobs

State that requests share:
    dashboard.py             Dashboard: the client, the access rules and everything below
    bulk_actions.py          actions on many jobs, in steps

Requests:
    page_request.py          a requested page and its validated parameters
    middleware.py            authentication, CSRF and origin checks, security headers
    pages/                   PAGES: what each address shows
    actions/                 ACTIONS: what users can do

HTML:
    formatting.py            numbers, times and events as text
    charts/                  charts, as SVG
    templates/, static/      HTML templates, stylesheet and script
    rendering.py             renders pages with all of them
    throttled_connection.py  a connection that takes at most a share of Redis' time
    live_updates.py          renders open pages again and sends them to their readers

Serving:
    app.py                   create_app: the routes
    web_server.py            the dashboard as a process of its own
"""

from aioqless.errors import require_extra

with require_extra("web"):
    from aioqless.contrib.dashboard.app import create_app
    from aioqless.contrib.dashboard.redaction import Privacy

__all__ = ["Privacy", "create_app"]
