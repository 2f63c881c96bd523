"""A reader who begins at docs/README.md finds what readers look for in at most two clicks, and every page at all."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest

from tests.docs.repository import ROOT, links_of, name_of

START: Final = ROOT / "docs" / "README.md"
MOST_CLICKS: Final = 2
FACTS: Final = {  # what is looked for: where it stands, as page and text of that page
    "how to start it and send a first message": ("docs/tutorial.md", "make run"),
    "the address and the credentials of an existing client": ("docs/how-to/point-an-existing-client.md", "`PARTNER_URL`"),
    "how a receiver checks a signature": ("docs/how-to/receive-callbacks.md", "webhook-signature"),
    "which callbacks exist": ("docs/reference/callbacks.md", "`TEMPLATE`"),
    "what an error text means": ("docs/reference/error-texts.md", "invalid_destination"),
    "how to repeat a request": ("docs/how-to/retry-safely.md", "Idempotency-Key"),
    "what 200 and uncertain mean": ("docs/explanation/delivery-guarantees.md", "200 means on disk"),
    "the rate of each call": ("docs/reference/rates.md", "`templates`"),
    "which rule a template broke": ("docs/reference/template-rules.md", "rule"),
    "how to make the operator fail": ("docs/how-to/simulate-failures.md", "Arm a fault"),
    "what differs from the documented API": ("docs/reference/differences.md", "Calls that differ"),
    "every setting": ("docs/reference/settings.md", "`WAYPOST_PUBLIC_URL`"),
    "how to connect the real operator": ("docs/how-to/connect-the-cloud-api.md", "Configure the webhook"),
    "how to back up and restore": ("docs/how-to/back-up-and-restore.md", "waypost store backup"),
    "what to do about an alert": ("docs/how-to/respond-to-alerts.md", "WaypostNotReady"),
    "how long data of a person is stored": ("docs/how-to/personal-data.md", "`keep_bodies_days`"),
    "how to upgrade without downtime": ("docs/how-to/upgrade.md", "without downtime"),
    "where a part of the source is": ("ARCHITECTURE.md", "src/waypost/dispatch/"),
    "which files an operation needs": ("docs/contributing/add-an-operation.md", "`tests/wire/cases/`"),
    "why callbacks to a failing receiver wait": ("docs/decisions/callbacks.md", "0042: "),
}  # fmt: skip


def clicks_to_pages() -> dict[str, int]:
    """Return for each page that is reached from the start how many links lead there at least."""
    clicks = {START: 0}
    waiting = [START]
    for page in waiting:
        for link in links_of(page):
            target = (page.parent / unquote(link).partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file() and target not in clicks:
                clicks[target] = clicks[page] + 1
                waiting.append(target)
    return {name_of(page): count for page, count in clicks.items() if page.is_relative_to(ROOT)}


CLICKS: Final = clicks_to_pages()


@pytest.mark.parametrize("fact", FACTS)
def test_fact_is_found_in_two_clicks(fact: str) -> None:
    page, text = FACTS[fact]

    assert text in (ROOT / page).read_text(encoding="utf-8")
    assert CLICKS[page] <= MOST_CLICKS


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=name_of)
def test_page_is_found_from_the_first(page: Path) -> None:
    assert name_of(page) in CLICKS
