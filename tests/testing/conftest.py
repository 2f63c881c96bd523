"""The plugin's own classes, without a pytest run between: one service for all, a partner for each test."""

from collections.abc import Callable, Iterator

import pytest

from pytest_waypost.dev_process import start_dev
from pytest_waypost.partner import Partner
from pytest_waypost.service import Service, serve_from
from tests.docs.repository import ROOT
from tests.support.polling import HANGS_AFTER_S

MakePartner = Callable[[str], Partner]


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    """Start the service."""
    service = serve_from(start_dev("", [], ROOT), within_s=HANGS_AFTER_S)
    yield service
    service.close()


@pytest.fixture
def make_partner(service: Service, request: pytest.FixtureRequest) -> Iterator[MakePartner]:
    """Make partners, and close them at the end."""
    made: list[Partner] = []

    def make(name: str) -> Partner:
        made.append(Partner(service, f"{request.node.nodeid} {name}"))
        return made[-1]

    yield make
    for partner in made:
        partner.close()


@pytest.fixture
def partner(make_partner: MakePartner) -> Partner:
    """Make the partner of the test."""
    return make_partner("")
