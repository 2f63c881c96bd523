"""The pytest plugin: fixtures that give each test a partner of its own, and failures that show what happened.

Loaded by its entry point wherever `waypost[testing]` is installed. It imports nothing that takes time, and
starts nothing, until a test asks for one of its fixtures.
"""

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from waypost.testing.async_wrappers import AsyncPartner
    from waypost.testing.partner import Partner
    from waypost.testing.runtime.service import Service

_HOW: Final = "thread, child, or the file of variables that a running `waypost dev` has written"
# fmt: off
OPTIONS: Final = (
    # command line   in the ini file      default    meaning
    ("--waypost HOW", "waypost",          "thread",  f"How the service runs: {_HOW}."),
    ("-",             "waypost_settings", "-",       "Settings of the service that is started, one name=value a line."),
    ("-",             "waypost_within_s", "5",       "How long waits last unless told otherwise, in seconds."),
)
# fmt: on
_PARTNERS: Final = pytest.StashKey["list[Partner]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options: how the service runs, with which settings, and how long waits last."""
    (_, how, thread, meaning), (_, settings, _, of_settings), (_, within, five, of_within) = OPTIONS
    group = parser.getgroup("waypost", "a messaging service with simulated phones")
    group.addoption("--waypost", metavar="HOW", help=meaning)
    parser.addini(how, meaning, default=thread)
    parser.addini(settings, of_settings, type="linelist")
    parser.addini(within, of_within, default=five)


@pytest.fixture(scope="session")
def waypost_service(request: pytest.FixtureRequest) -> Iterator["Service"]:
    """The running service, started by the first test that needs it; one for each process of a test run."""
    from waypost.testing.runtime.engine import NotStarted
    from waypost.testing.runtime.service import start

    config = request.config
    how = config.getoption("--waypost") or config.getini("waypost")
    within = str(config.getini("waypost_within_s"))
    try:
        service = start(how, config.getini("waypost_settings"), within_s=float(within))
    except (NotStarted, ValueError) as error:
        pytest.exit(f"waypost: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    yield service
    service.close()


@pytest.fixture
def make_waypost_partner(
    request: pytest.FixtureRequest, waypost_service: "Service"
) -> Iterator[Callable[[str], "Partner"]]:
    """Makes further partners for one test: `make_waypost_partner("another")`."""
    from waypost.testing.partner import Partner

    made: list[Partner] = []
    request.node.stash[_PARTNERS] = made

    def make(name: str) -> Partner:
        made.append(Partner(waypost_service, f"{request.node.nodeid} {name}".strip()))
        return made[-1]

    yield make
    for partner in made:
        partner.close()


@pytest.fixture
def waypost(make_waypost_partner: Callable[[str], "Partner"]) -> "Partner":
    """A partner of the test's own: send, hold phones, tap, wait for callbacks, move time, arm faults."""
    return make_waypost_partner("")


@pytest.fixture
def async_waypost(waypost: "Partner") -> "AsyncPartner":
    """The partner of the test for a test that is a coroutine: the same, awaited."""
    from waypost.testing.async_wrappers import AsyncPartner

    return AsyncPartner(waypost)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what happened to the test's partner under a failure that does not show it already."""
    report = yield
    if report.when == "call" and report.failed and call.excinfo is not None:
        from waypost.testing.failures import NotSeen

        if not isinstance(call.excinfo.value, NotSeen):
            partners = item.stash.get(_PARTNERS, list["Partner"]())
            for partner in partners:
                report.sections.append(("Waypost: what happened", partner.what_happened()))
    return report
