"""python -m aioqless, and the command `aioqless`."""

import gc
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
    gc.disable()  # what is imported stays: neither the imports nor the exit search it for garbage
    try:
        from aioqless.cli import main as cli
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    cli.main(on_imported=_collect_later_objects)


def _collect_later_objects() -> None:
    gc.freeze()
    gc.enable()


if __name__ == "__main__":
    main()
