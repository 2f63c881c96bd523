"""The help of the commands: by subject, each with an example; errors that name the most similar option."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperGroup

from waypost import __version__
from waypost.cli.errors import EXIT_USAGE, fail
from waypost.cli.variables import InvalidSetting, set_command_secrets

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
"""Settings of the outermost group; its commands inherit them."""
COMPLETES: Final = "_WAYPOST_COMPLETE"
"""The variable by which the script of `waypost completion` requests completions."""
OTHER_SUBJECT: Final = "Commands"
_UNCUT: Final = 1000
"""Characters of a help in a list of commands; the default cuts it to one line of the terminal."""
_USAGE_ERROR: Final = cast("type[Exception]", typer.BadParameter.__bases__[0])
"""The error of which the one about an unknown option is a kind; the library does not name it."""


class SubjectGroup(TyperGroup):
    """Commands listed by subject, in the order in which the subjects first occur.

    The subject of a command is its `rich_help_panel`. Help is plain text, so that it needs no further module.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each subject, with the first sentence of each command, uncut."""
        rows: dict[str, list[tuple[str, str]]] = {subject: [] for subject in SUBJECTS}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                subject = getattr(command, "rich_help_panel", None)
                subject = subject if isinstance(subject, str) else OTHER_SUBJECT
                rows.setdefault(subject, []).append((name, command.get_short_help_str(_UNCUT)))
        for subject, commands in rows.items():
            if commands:
                with formatter.section(subject):
                    formatter.write_dl(commands)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the group."""
        with _suggest_option():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command of the group; its options are parsed here."""
        with _suggest_option():
            return super().invoke(ctx)


SUBJECTS: Final = (
    RUN := "Run",
    EXCHANGE := "Send and receive",
    SIMULATE := "Simulate",
    SET_UP := "Set up",
    INSPECT := "Inspect",
    STORE := "Store and personal data",
    OTHER := "This program",
)
"""Subjects of the commands, in the order of the help."""


_LIBRARY_TEXTS: Final = (  # texts of the library that checks values, and ours
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
    (re.compile(r"Input should be a valid boolean.*"), "must be true or false"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Input should be "), "must be "),
    (re.compile(r"Got unexpected extra argument\(s\) \((.*)\)"), r"There is nothing to do with: \1"),
)


def _translate(text: str) -> str:
    for library_text, ours in _LIBRARY_TEXTS:
        text = library_text.sub(ours, text)
    return text


@contextmanager
def _suggest_option() -> Generator[None]:
    """Say an error of usage in our words; that about an unknown option has the most similar one."""
    try:
        yield
    except _USAGE_ERROR as error:
        unknown: Any = error
        unknown.message = _translate(unknown.message)
        similar: list[str] | None = getattr(unknown, "possibilities", None)
        if similar:
            best = get_close_matches(str(unknown.option_name), similar, n=1) or similar[:1]
            unknown.message = f"{unknown.message.rstrip('.')}. Did you mean {best[0]}?"
            unknown.possibilities = None
        raise


DOCS: Final = "docs/"
"""Where the pages are: in the repository, until a release publishes them."""
_CLI: Final = "how-to/use-the-command-line.md"
_CLIENTS: Final = "how-to/point-an-existing-client.md"
_OPERATOR: Final = "how-to/connect-the-cloud-api.md"
_CALLBACKS: Final = "how-to/receive-callbacks.md"
_CLOCK: Final = "how-to/travel-in-time.md"
_PERSONAL: Final = "how-to/personal-data.md"
_WATCH: Final = "how-to/watch-it-run.md"
_SECURE: Final = "how-to/secure-the-service.md"
_APP: Final = "01990000-0000-7000-8000-0000000000a1"

EXAMPLES: Final[dict[str, tuple[str, str]]] = {
    # command, what follows it, page
    "": ("dev", "tutorial.md"),
    "dev": ("--memory", "tutorial.md"),
    "serve": ("--data /var/lib/waypost", "reference/settings.md"),
    "simulator": ("--port 8081", "how-to/use-the-simulator-alone.md"),
    "intercept": ("-- python app.py", "how-to/intercept-a-program.md"),
    "send": ("--template order_ready --param Ann --param 4711", _CLI),
    "tap": ("'Yes please'", _CLI),
    "listen": ("--forward-to http://localhost:3000/hook --events read", _CLI),
    "tail": ("--lines 20", _CLI),
    "trigger": ("text --set 'text=Where is it?'", _CLI),
    "replay": ("--subscription 1 --given-up", _CALLBACKS),
    "apply": ("setup.toml --dry-run", "how-to/set-up-from-a-file.md"),
    "trace": ("01a21f1b-48ed-7142-ae76-1a86b472aaf9", _WATCH),
    "doctor": ("--json", _OPERATOR),
    "config": ("--config waypost.toml", "reference/settings.md"),
    "health": ("--live", "how-to/run-in-a-container.md"),
    "audit": ("--outcome rejected --days 7", _SECURE),
    "move": ("--to postgresql://waypost@db/waypost", "how-to/run-on-postgresql.md"),
    "mcp": ("--env-file waypost-dev.env", "how-to/use-from-agents.md"),
    "completion": ("bash", _CLI),
    "version": ("", _CLI),
    "partner": ("list", _OPERATOR),
    "partner add": ("ann@acme.example Acme --if-missing", _OPERATOR),
    "partner list": ("--json", _OPERATOR),
    "partner secret": ("1 --days 90", _SECURE),
    "partner secrets": ("1", _SECURE),
    "partner revoke-secret": ("1 0123456789abcdef", _SECURE),
    "partner token": ("1 --name reports", _SECURE),
    "partner tokens": ("1", _SECURE),
    "partner revoke-token": ("1 0123456789abcdef", _SECURE),
    "partner password": ("1 --end-tokens", _SECURE),
    "partner quota": ("1 --messages 100000", "explanation/fairness.md"),
    "partner retention": ("1 --bodies-days 30", _PERSONAL),
    "partner key": ("1 --name shop", _OPERATOR),
    "partner keys": ("1", _SECURE),
    "partner revoke-key": ("0123456789abcdef --of 1", _SECURE),
    "account": ("list", _OPERATOR),
    "account operator": ("cloud --base-url https://graph.facebook.com --token-file token.txt", _OPERATOR),
    "account token": ("cloud --token-file token.txt", _OPERATOR),
    "account list": ("--json", _OPERATOR),
    "account numbers": ("cloud 1000000000000001", _OPERATOR),
    "account business": ("1000000000000001 1 cloud", _OPERATOR),
    "account subscribe": ("1000000000000001", _OPERATOR),
    "app": ("list", _OPERATOR),
    "app add": ("1 AcmeShop 15550001000 1000000000000002 1000000000000001", _OPERATOR),
    "app connect": (f"{_APP} 15550001000 1000000000000002 1000000000000001", _OPERATOR),
    "app contact-email": (_APP, _OPERATOR),
    "app onboard": (_APP, _OPERATOR),
    "app offer": ("'Hat shop' ann@hats.example", _CLIENTS),
    "app links": ("--json", _CLIENTS),
    "app decide": (f"{_APP} APPROVE", _CLIENTS),
    "app list": ("--json", _OPERATOR),
    "app revoke-token": (_APP, "how-to/replace-the-secret-key.md"),
    "app rates": (f"{_APP} templates=20/60s", "reference/rates.md"),
    "app operator": (f"{_APP} cloud --submit-templates", _OPERATOR),
    "template": ("list", _CLI),
    "template list": ("--status APPROVED", _CLI),
    "template create": ("parcel 'Hi {{1}}, is today fine?' --example Ann --button 'Yes please'", _CLI),
    "template wait": ("parcel", _CLI),
    "flow": ("check booking.json", "how-to/check-a-flow.md"),
    "flow check": ("booking.json --strict", "how-to/check-a-flow.md"),
    "recipient": ("export +4915123456789", _PERSONAL),
    "recipient export": ("+4915123456789 --output ann.jsonl", _PERSONAL),
    "recipient erase": ("+4915123456789", _PERSONAL),
    "callbacks": ("list", _CALLBACKS),
    "callbacks list": (f"--app {_APP}", _CALLBACKS),
    "callbacks show": ("01a21f1b-49a9-74a1-80cf-f3354f31d938", _CALLBACKS),
    "callbacks check": ("1", _CALLBACKS),
    "callbacks resume": ("1", _CALLBACKS),
    "callbacks retry": ("1", _CALLBACKS),
    "callbacks key": ("1", _CALLBACKS),
    "callbacks rotate": ("1 --keep-old-for-s 3600", _CALLBACKS),
    "callbacks report": ("--subscription 1 --from 2026-11-22T10:00Z", _CALLBACKS),
    "dead-letter": ("list", "how-to/respond-to-alerts.md"),
    "dead-letter list": ("--json", "how-to/respond-to-alerts.md"),
    "dead-letter retry": ("4711", "how-to/respond-to-alerts.md"),
    "dead-letter delete": ("4711", "how-to/respond-to-alerts.md"),
    "requests": ("--status 4xx --route /template/msg", _WATCH),
    "requests show": ("01a21f1b-591f-7312-99ad-5c8771a2dc7f", _WATCH),
    "clock": ("advance --hours 24", _CLOCK),
    "clock show": ("--json", _CLOCK),
    "clock advance": ("--days 30", _CLOCK),
    "clock freeze": ("", _CLOCK),
    "clock run": ("--factor 60", _CLOCK),
    "snapshot": ("save before-the-sale", _CLOCK),
    "snapshot save": ("before-the-sale --to before-the-sale.snapshot", _CLOCK),
    "snapshot load": ("before-the-sale", _CLOCK),
    "snapshot list": ("--json", _CLOCK),
    "snapshot drop": ("before-the-sale", _CLOCK),
    "snapshot reset": ("", _CLOCK),
    "store": ("backup waypost-backup.db", "how-to/back-up-and-restore.md"),
    "store upgrade": ("--check", "how-to/upgrade.md"),
    "store backup": ("waypost-backup.db", "how-to/back-up-and-restore.md"),
    "secret": ("rotate", "how-to/replace-the-secret-key.md"),
    "secret rotate": ("--keep-old-for 86400", "how-to/replace-the-secret-key.md"),
}
"""By the command without `waypost`: its arguments in the example, and the page."""


def _print_version(is_given: bool) -> None:
    if is_given:
        typer.echo(__version__)
        raise typer.Exit


def create_app() -> typer.Typer:
    """Return the outermost group without its commands."""
    app = typer.Typer(
        help="A messaging and template service that a business runs itself.",
        cls=SubjectGroup,
        context_settings=CONTEXT,
        no_args_is_help=True,
        add_completion=False,  # `waypost completion` prints it, and edits no file
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # it would read [default: …] as markup, and print errors in boxes
    )

    @app.callback()
    def options(
        is_version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """A messaging and template service that a business runs itself."""
        try:
            set_command_secrets()
        except InvalidSetting as error:
            fail(str(error), code=EXIT_USAGE)

    return app


def add_examples(app: typer.Typer, prefix: str = "") -> None:
    """Set the end of the help of each command, and of each group."""
    for command in app.registered_commands:
        callback_name = command.callback.__name__ if command.callback else ""
        command.epilog = _epilog(f"{prefix}{command.name or callback_name.replace('_', '-')}")
    for group in app.registered_groups:
        group.epilog = _epilog(f"{prefix}{group.name}")
        if group.typer_instance is not None:
            add_examples(group.typer_instance, f"{prefix}{group.name} ")
    if not prefix:
        app.info.epilog = _epilog("")


def _epilog(command: str) -> str:
    # The first line keeps the line break in the help.
    arguments, page = EXAMPLES[command]
    example = " ".join(filter(None, ("waypost", command, arguments)))
    return f"\b\nExample: {example}\nPage:    {DOCS}{page}"
