"""`waypost intercept`: the command's options."""

from typing import Annotated

import typer

from waypost.cli.connections import ENV_FILE, EnvFile
from waypost.cli.errors import EXIT_USAGE, fail, load_settings


def intercept(
    command: Annotated[list[str] | None, typer.Argument(help="The program and its arguments, after --.")] = None,
    url: Annotated[
        str | None,
        typer.Option(
            help="URL of a running `waypost dev`; without it that of --env-file, or a new one that ends with the "
            "program."
        ),
    ] = None,
    graph_url: Annotated[
        str | None, typer.Option(help="URL of its simulator. [default: that of --env-file, if --url is there]")
    ] = None,
    env_file: EnvFile = ENV_FILE,
    by: Annotated[
        str, typer.Option(metavar="WAY", help="How the hosts lead here: names, proxy, or auto: names if possible.")
    ] = "auto",
    block_others: Annotated[
        bool, typer.Option("--block-others", help="Block connections to other machines; else they pass, unread.")
    ] = False,
    print_variables: Annotated[
        bool,
        typer.Option(
            "--print-variables",
            help="Run no program: print the variables for one and an empty line, and wait for a signal.",
        ),
    ] = False,
    until_stdin_ends: Annotated[
        bool, typer.Option("--until-stdin-ends", help="With --print-variables: also stop when standard input ends.")
    ] = False,
) -> None:
    """Run a program, unchanged, for which the vendor's and the operator's hosts are `waypost dev`."""
    from waypost.cli.intercept import InterceptOptions, find_wrong_usage, run_intercepted

    options = InterceptOptions(
        command or [], url, graph_url, env_file, by, block_others=block_others, until_stdin_ends=until_stdin_ends
    )
    wrong = find_wrong_usage(options, print_variables=print_variables)
    if wrong is not None:
        fail(wrong, code=EXIT_USAGE)
    raise typer.Exit(run_intercepted(options, load_settings()))
