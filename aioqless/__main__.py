"""python -m aioqless, and the command `aioqless`."""

import sys

from aioqless import __version__
from aioqless.runtime import os_signals

INTERRUPTED = 130  # exit code, as of a shell


def main() -> None:
    """Run the command line.

    Signals that a worker handles later don't end it while it is importing.
    """
    if sys.argv[1:] == ["--version"]:
        print(f"aioqless {__version__}")
        return
    if sys.argv[1:2] == ["worker"]:
        os_signals.prepare_worker()
    try:
        from aioqless.cli import main as cli
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    cli.main()


if __name__ == "__main__":
    main()
