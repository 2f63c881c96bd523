"""The pytest plugin: fixtures that give each test its own partner, and reports of failures.

pytest loads it by its entry point wherever `waypost[testing]` is installed. Until a test uses one of its
fixtures, it imports nothing slow and starts nothing.
"""

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from waypost.testing.async_wrappers import AsyncPartner
    from waypost.testing.partner import Partner
    from waypost.testing.runtime.service import Service

_HOW_HELP: Final = "thread, child, or the environment file of a running `waypost dev`"
# fmt: off
OPTIONS: Final = (
    # command line   in the ini file      default    meaning
    ("--waypost HOW", "waypost",          "thread", f"How the service runs: {_HOW_HELP}."),
    ("-",             "waypost_settings", "-",      "Settings of the service that is started, one name=value per line."),
    ("-",             "waypost_within_s", "5",      "Default timeout of waits, in seconds."),
)
# fmt: on
_PARTNERS: Final = pytest.StashKey["list[Partner]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: how the service runs, its settings, and the timeout of waits."""
    (_, how, thread, meaning), (_, settings, _, of_settings), (_, within, five, of_within) = OPTIONS
    group = parser.getgroup("waypost", "a messaging service with simulated phones")
    group.addoption("--waypost", metavar="HOW", help=meaning)
    parser.addini(how, meaning, default=thread)
    parser.addini(settings, of_settings, type="linelist")
    parser.addini(within, of_within, default=five)


@pytest.fixture(scope="session")
def waypost_service(request: pytest.FixtureRequest) -> Iterator["Service"]:
    """The running service, one for each process of a test run; the first test that needs it starts it."""
    from waypost.testing.runtime.contract import NotStarted
    from waypost.testing.runtime.service import start_service

    config = request.config
    how = config.getoption("--waypost") or config.getini("waypost")
    within = str(config.getini("waypost_within_s"))
    try:
        service = start_service(how, config.getini("waypost_settings"), within_s=float(within))
    except (NotStarted, ValueError) as error:
        pytest.exit(f"waypost: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    yield service
    service.close()


@pytest.fixture
def make_waypost_partner(
    request: pytest.FixtureRequest, waypost_service: "Service"
) -> Iterator[Callable[[str], "Partner"]]:
    """Function that makes further partners for one test: `make_waypost_partner("another")`."""
    from waypost.testing.partner import Partner

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
    from waypost.testing.async_wrappers import AsyncPartner

    return AsyncPartner(waypost)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a report of the test's partners to a failure that does not show one already."""
    report = yield
    if report.when == "call" and report.failed and call.excinfo is not None:
        from waypost.testing.failures import NotSeen

        if not isinstance(call.excinfo.value, NotSeen):
            partners = item.stash.get(_PARTNERS, list["Partner"]())
            for partner in partners:
                report.sections.append(("Waypost: what happened", partner.describe_activity()))
    return report
