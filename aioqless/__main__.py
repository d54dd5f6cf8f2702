"""python -m aioqless, and the command `aioqless`."""

import sys

from aioqless import signals


def main() -> None:
    """Run the command line. A worker that is still importing it isn't ended by the signals that it
    is to obey later."""
    if sys.argv[1:2] == ["worker"]:
        signals.hold("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
    from aioqless.cli import main as cli

    cli.main()


if __name__ == "__main__":
    main()
