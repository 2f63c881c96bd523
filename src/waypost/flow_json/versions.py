"""Versions of Flow JSON and of the Data API: what may be published, and what may only be sent.

Source: public page "Flows changelog", as of November 2026.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

Version: TypeAlias = tuple[int, int]

_FORMAT: Final = re.compile(r"(\d{1,3})\.(\d{1,3})")


class VersionState(StrEnum):
    """A state of a version: may Flows with it be published, and sent."""

    CURRENT = "current"
    """Flows with it may be published and sent."""
    FROZEN = "frozen"
    """Flows with it may be sent, and not be published."""
    EXPIRED = "expired"
    """Nothing may be done with it."""


@dataclass(frozen=True)
class FlowVersion:
    """A version of Flow JSON.

    Attributes:
        state: its state in November 2026.
    """

    number: Version
    state: VersionState
    brought: str


# fmt: off
FLOW_VERSIONS: Final = (
    #           version  state                  what it brought
    FlowVersion((2, 1), VersionState.FROZEN,  "the first public set"),
    FlowVersion((3, 0), VersionState.FROZEN,  "`endpoint_uri` by the API instead of `data_channel_uri`"),
    FlowVersion((3, 1), VersionState.FROZEN,  "the same"),
    FlowVersion((4, 0), VersionState.FROZEN,  "inputs without Form, If, Switch, pickers of media, references to screens"),
    FlowVersion((5, 0), VersionState.FROZEN,  "pictures of options, dates as YYYY-MM-DD"),
    FlowVersion((5, 1), VersionState.CURRENT, "RichText, `markdown`, `sensitive`"),
    FlowVersion((6, 0), VersionState.CURRENT, "nested expressions, `update_data`, `open_url`"),
    FlowVersion((6, 1), VersionState.CURRENT, "CalendarPicker"),
    FlowVersion((6, 2), VersionState.CURRENT, "NavigationList, `pattern`"),
    FlowVersion((6, 3), VersionState.CURRENT, "ChipsSelector, RichText beside a Footer"),
    FlowVersion((7, 0), VersionState.CURRENT, "`label-variant`, types of `init-values` are checked"),
    FlowVersion((7, 1), VersionState.CURRENT, "ImageCarousel, ChipsSelector in If and Switch"),
    FlowVersion((7, 2), VersionState.CURRENT, "references in nested expressions of actions are checked"),
    FlowVersion((7, 3), VersionState.CURRENT, "stricter checks of routing model and data model"),
)
DATA_API_VERSIONS: Final = {
    #       from Flow JSON
    "3.0": (2, 1),
    "4.0": (7, 3),
}
# fmt: on
NEWEST: Final = FLOW_VERSIONS[-1]


def read_version(text: str) -> Version | None:
    """Return a version as numbers; None if it is not written `major.minor`."""
    match = _FORMAT.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def find_version(text: str) -> FlowVersion | None:
    """Return a version of Flow JSON that exists or existed; None for any other text."""
    number = read_version(text)
    return next((version for version in FLOW_VERSIONS if version.number == number), None)
