"""The command line: the only place that knows argv and exit codes.

main.py             runs the command that argv names
app.py              what all commands share
command_index.py    every command: its section in the help, the modules that have it
commands/           one file per group of commands; extensions have theirs in contrib/
presentation/       tables, JSON, prompts, completion, the screen of `top`
worker_process.py   a worker as the process' main program
signal_handlers.py  what a worker and a supervisor do on each signal
shutdown.py         the process ends when it promised to
descriptors.py      how many file descriptors a worker needs
"""
