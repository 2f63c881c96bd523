"""`waypost intercept`: the command's options."""

from typing import Annotated, Final

import typer

from waypost.cli.connections import ENV_FILE, EnvFile
from waypost.cli.errors import EXIT_USAGE, fail, load_settings

WAYS: Final = ("auto", "names", "proxy")
"""Of `--by`."""


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
    if by not in WAYS:
        fail(f"--by must be one of {', '.join(WAYS)}; {by!r} is not", code=EXIT_USAGE)
    if bool(command) == print_variables:
        fail("name a program after --, or give --print-variables; one of them", code=EXIT_USAGE)
    if print_variables and by == "names":
        fail("--by names needs a program; with --print-variables the hosts are reached by proxy", code=EXIT_USAGE)
    if until_stdin_ends and not print_variables:
        fail("--until-stdin-ends is for --print-variables: a program has the standard input", code=EXIT_USAGE)
    if graph_url is not None and url is None:
        fail("--graph-url is the simulator of --url: give both", code=EXIT_USAGE)
    from waypost.cli.intercept import InterceptOptions, run_intercepted

    options = InterceptOptions(
        command or [], url, graph_url, env_file, by, block_others=block_others, until_stdin_ends=until_stdin_ends
    )
    raise typer.Exit(run_intercepted(options, load_settings()))
