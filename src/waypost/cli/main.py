"""The entry point: `waypost intercept`, which starts with each program that it runs, loads as little as possible."""

import gc
import os
import sys
from typing import Final

from waypost.base.files import set_umask

ALONE: Final = "intercept"
"""The command that is loaded without the others."""


def main() -> None:
    """Run the command line. Only the user who runs a command can read the files it writes."""
    set_umask()
    try:
        _run()
    finally:
        gc.freeze()  # the interpreter would search all that was imported for garbage: a third of the time of a command


def _run() -> None:
    if sys.argv[1:2] != [ALONE]:
        from waypost.cli.command_tree import run

        return run()
    from waypost.cli.errors import exit_on_failure, load_settings
    from waypost.cli.intercept import read_plain_arguments, run_intercepted

    options = read_plain_arguments(sys.argv[2:])
    if options is None:
        return _run_alone()
    with exit_on_failure():
        sys.exit(run_intercepted(options, load_settings()))


def _run_alone() -> None:
    """Run the command by the library of commands: its help, an error, or arguments in another notation."""
    from waypost.cli.command_group import COMPLETES, RUN, add_examples, create_app

    if COMPLETES in os.environ:
        from waypost.cli.command_tree import run

        return run()
    from waypost.cli.commands.intercept import intercept

    app = create_app()
    app.command(rich_help_panel=RUN)(intercept)
    add_examples(app)
    return app()
