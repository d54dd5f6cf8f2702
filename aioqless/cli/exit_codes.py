"""Exit codes of the command line; docs/command-line.md lists them for users."""

REFUSED = 1  # the command can't be carried out; the message says why
USAGE = 2  # wrong arguments, as the parsers report them
UNREACHABLE = 3  # Redis can't be reached or started
RECYCLED = 4  # a worker process reached its limit of jobs or memory, for its supervisor
JOB_FAILED = 5  # a job that the command waited for failed
ROWS_REJECTED = 6  # some rows of a file can't be jobs; the others were put
INTERRUPTED = 130  # Ctrl-C
