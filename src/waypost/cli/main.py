"""The entry point: with `waypost intercept`, which starts with each program that it runs, it loads no other command."""

import os
import sys
from typing import Final

from waypost.base.files import set_umask
from waypost.cli.command_group import COMPLETES, RUN, add_examples, create_app

ALONE: Final = "intercept"
"""The command that is loaded without the others."""


def main() -> None:
    """Run the command line. Only the user who runs a command can read the files it writes."""
    set_umask()
    if sys.argv[1:2] != [ALONE] or COMPLETES in os.environ:
        from waypost.cli.command_tree import run

        return run()
    from waypost.cli.commands.intercept import intercept

    app = create_app()
    app.command(rich_help_panel=RUN)(intercept)
    add_examples(app)
    return app()
