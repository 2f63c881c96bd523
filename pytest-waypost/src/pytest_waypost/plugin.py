"""The pytest plugin: fixtures that give each test its own partner, and reports of failures.

pytest loads it by its entry point. Until a test uses one of its fixtures, it imports nothing slow and starts
nothing. It runs the service as a process of its own, and imports nothing of it.
"""

import os
from collections.abc import Callable, Generator, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pytest_waypost.async_wrappers import AsyncPartner
    from pytest_waypost.partner import Partner
    from pytest_waypost.service import Service

COMMAND_VARIABLE: Final = "PYTEST_WAYPOST_COMMAND"
# fmt: off
OPTIONS: Final = (
    # command line                 in the ini file     default             meaning
    ("--waypost FILE",            "waypost",          "-",                "Environment file of a running `waypost dev`, which the tests then use."),
    ("--waypost-command COMMAND", "waypost_command",  "`waypost`",        f"Command that starts Waypost from another environment or an image; also the variable `{COMMAND_VARIABLE}`."),
    ("-",                         "waypost_settings", "-",                "Settings of the service that is started, one name=value per line."),
    ("-",                         "waypost_within_s", "5",                "Default timeout of waits, in seconds."),
)
# fmt: on
_PARTNERS: Final = pytest.StashKey["list[Partner]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: which service, the command that starts it, its settings, and the timeout of waits."""
    (
        (_, running, _, of_running),
        (_, command, _, of_command),
        (_, settings, _, of_settings),
        (_, within, five, of_within),
    ) = OPTIONS
    group = parser.getgroup("waypost", "a messaging service with simulated phones")
    group.addoption("--waypost", metavar="FILE", help=of_running)
    group.addoption("--waypost-command", metavar="COMMAND", help=of_command)
    parser.addini(running, of_running, default="")
    parser.addini(command, of_command, default="")
    parser.addini(settings, of_settings, type="linelist")
    parser.addini(within, of_within, default=five)


@pytest.fixture(scope="session")
def waypost_service(request: pytest.FixtureRequest) -> Iterator["Service"]:
    """The running service, one for each process of a test run; the first test that needs it starts it."""
    from pytest_waypost.dev_process import NotStarted

    try:
        service = _open_service(request.config)
    except (NotStarted, ValueError) as error:
        pytest.exit(f"waypost: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    yield service
    service.close()


@pytest.fixture(scope="session")
def waypost_host_variables(waypost_service: "Service", pytestconfig: pytest.Config) -> Iterator[dict[str, str]]:
    """Variables for a program with the vendor's and the operator's hosts in its code, which then lead to the service.

    They name a proxy and a file of authorities, both of `waypost intercept`. Pass them to a subprocess in addition to its
    environment: `subprocess.run(command, env=os.environ | waypost_host_variables)`.
    """
    from pytest_waypost.dev_process import NotStarted, start_interception

    try:
        process = start_interception(_command(pytestconfig), waypost_service.variables, pytestconfig.rootpath)
        variables = dict(process.wait_until_started())
    except NotStarted as error:
        pytest.exit(f"waypost: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    yield variables
    process.stop()


@pytest.fixture
def waypost_hosts(waypost_host_variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same variables, set in this process for one test: for requests, HTTPX and urllib, and what a test starts.

    Clients of aiohttp need `trust_env=True` and an SSL context that the test makes.
    """
    for name, value in waypost_host_variables.items():
        monkeypatch.setenv(name, value)
    return waypost_host_variables


def _command(config: pytest.Config) -> str:
    """Return the command that starts Waypost; empty if none is set."""
    commands = (
        config.getoption("--waypost-command"),
        os.environ.get(COMMAND_VARIABLE),
        config.getini("waypost_command"),
    )
    return next(filter(None, commands), "")


def _open_service(config: pytest.Config) -> "Service":
    from pytest_waypost.dev_process import start_dev

    within_s = float(config.getini("waypost_within_s"))
    environment_file = config.getoption("--waypost") or config.getini("waypost")
    if environment_file:
        from pytest_waypost.service import connect_to_service

        return connect_to_service(Path(environment_file), within_s=within_s)
    process = start_dev(_command(config), config.getini("waypost_settings"), config.rootpath)
    import_module("pytest_waypost.partner")  # while the process starts
    from pytest_waypost.service import serve_from

    return serve_from(process, within_s=within_s)


@pytest.fixture
def make_waypost_partner(
    request: pytest.FixtureRequest, waypost_service: "Service"
) -> Iterator[Callable[[str], "Partner"]]:
    """Function that makes further partners for one test: `make_waypost_partner("another")`."""
    from pytest_waypost.partner import Partner

    partners: list[Partner] = []
    request.node.stash[_PARTNERS] = partners

    def make(name: str) -> Partner:
        partners.append(Partner(waypost_service, f"{request.node.nodeid} {name}".strip()))
        return partners[-1]

    yield make
    for partner in partners:
        partner.close()


@pytest.fixture
def waypost(make_waypost_partner: Callable[[str], "Partner"]) -> "Partner":
    """The partner of one test: send, use phones, tap, wait for callbacks, advance the clock, arm faults."""
    return make_waypost_partner("")


@pytest.fixture
def async_waypost(waypost: "Partner") -> "AsyncPartner":
    """The partner of one test that is a coroutine: the same calls, awaited."""
    from pytest_waypost.async_wrappers import AsyncPartner

    return AsyncPartner(waypost)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a report of the test's partners to a failure that does not show one already."""
    report = yield
    if report.when == "call" and report.failed and call.excinfo is not None:
        from pytest_waypost.failures import NotSeen

        if not isinstance(call.excinfo.value, NotSeen):
            partners = item.stash.get(_PARTNERS, list["Partner"]())
            for partner in partners:
                report.sections.append(("Waypost: what happened", partner.describe_activity()))
    return report
