"""The command line: the only place that knows argv and exit codes.

main.py              runs the command that argv names
app.py               the Typer app of all other commands
help.py              the help of `aioqless` itself
options.py           options that several commands share
commands/            one file per group of commands; extensions have theirs in contrib/*/cli
presentation/        tables, JSON, prompts, job details
partitions.py        the partitions that the environment gives a namespace
connect.py           runs a command with a connected client
job_lookup.py        finds jobs by jid
completion.py        shell completion
watch.py             watches jobs until they have ended
json_input.py        reads a job's data
exit_codes.py        exit codes
worker_command.py    runs `aioqless worker`
worker_options.py    its options, which argparse parses
worker_process.py    a worker as the main program of a process
acl_roles.py         users of Redis who may do what a role needs
signal_handlers.py   signal handlers of a worker process
status_reporter.py   reports a worker's status to its supervisor
health_check.py      health checks over HTTP
http_server.py       the HTTP server of health checks and metrics
systemd.py           readiness and watchdog of a systemd service
shutdown_timer.py    ends a process in time
open_file_limit.py   checks the limit of open file descriptors
"""
