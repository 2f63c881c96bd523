"""Interfaces that `assembly` implements for the control API of `waypost dev`: partners for tests, and snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class NotReceived(Exception):
    """A wait failed: what was expected did not arrive in time, or what was not expected did.

    Attributes:
        explanation: several lines: the first says what failed, the others what happened instead.
    """

    def __init__(self, explanation: str) -> None:
        super().__init__(explanation.partition("\n")[0])
        self.explanation = explanation


@dataclass(frozen=True, slots=True)
class PhoneMessageFilter:
    """Conditions of a message to a phone; empty ones match every message."""

    text: str = ""  # a part of its text
    type: str = ""  # such as `text` or `template`
    message_id: str = ""  # the service's id of it
    button: str = ""  # the label of one of its buttons


@dataclass(frozen=True, slots=True)
class CallbackFilter:
    """Conditions of a callback; empty ones match every callback."""

    kind: str = ""  # such as `delivered`, `quick_reply` or `status-update`
    message_id: str = ""  # the service's id of the message it is about
    phone: str = ""  # the digits of the phone it is about
    text: str = ""  # a part of its text
    postback_text: str = ""  # of the tapped button


@dataclass(frozen=True, slots=True)
class CallbackOptions:
    """Subscription and responses of a partner's inbox."""

    forward_to: str  # URL of the application under test; empty: callbacks are not forwarded
    status: int  # of the response while callbacks are not forwarded
    version: int  # of the bodies, 2 or 3
    modes: tuple[str, ...]  # of the subscription
    headers: tuple[tuple[str, str], ...]  # that the service adds to each callback


class DevPartners(Protocol):
    """Creates partners for tests, and waits for their messages and callbacks.

    Every method raises `ControlApiError` if the partner is unknown or an API rejects a request.
    """

    async def create(self, *, name: str, api_url: str, graph_url: str) -> dict[str, Any]:
        """Create a partner with its own app, number, business account and operator account; return its view.

        Args:
            name: names and numbers are derived from it; empty: random ones.
            api_url: base URL of the service in the variables; empty: the service's own.
            graph_url: the same for the simulator.
        """
        ...

    def list_all(self) -> list[dict[str, Any]]:
        """Return the partners, oldest first."""
        ...

    def show(self, partner_id: str) -> dict[str, Any]:
        """Return one partner."""
        ...

    async def delete(self, partner_id: str) -> None:
        """Delete a partner's subscriptions and faults, and close its inbox."""
        ...

    async def add_phone(self, partner_id: str, *, name: str, number: str) -> dict[str, str]:
        """Return the phone of a person, the same for the same name.

        Args:
            partner_id: the partner.
            name: of the person and of the profile.
            number: digits; empty: derived from the names of partner and person.
        """
        ...

    async def change_rates(self, partner_id: str, *, rates: Mapping[str, str | None], reset: bool) -> dict[str, Any]:
        """Give the partner's app rates of its own; return the rates of its app.

        Args:
            partner_id: the partner.
            rates: by row, such as `{"templates": "20/60s"}`; null removes one.
            reset: first remove all of its own.
        """
        ...

    async def change_callbacks(self, partner_id: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change members of `CallbackOptions`; the inbox subscribes again if needed."""
        ...

    def list_callbacks(self, partner_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
        """Return the newest attempts of callbacks after a position, oldest first."""
        ...

    async def wait_for_message(
        self, partner_id: str, *, phone: str, wanted: PhoneMessageFilter, timeout_ms: int
    ) -> dict[str, Any]:
        """Return the first matching message on a phone that was not returned before.

        Raises:
            NotReceived: none arrived in time.
        """
        ...

    async def wait_for_callback(self, partner_id: str, *, wanted: CallbackFilter, timeout_ms: int) -> dict[str, Any]:
        """Return the first matching callback with a 2xx response that was not returned before.

        Raises:
            NotReceived: none arrived in time.
        """
        ...

    async def expect_no_callback(self, partner_id: str, *, unwanted: CallbackFilter, within_ms: int) -> None:
        """Return after a time without a matching callback; callbacks that a wait returned do not count.

        Raises:
            NotReceived: there is one.
        """
        ...

    async def decide_template(
        self, partner_id: str, *, template: str, action: str, details: Mapping[str, str], timeout_ms: int
    ) -> dict[str, Any]:
        """Make the operator decide on a template, and return it once the service has its new status.

        Raises:
            NotReceived: it did not reach the operator, or its new status did not reach the service.
        """
        ...

    async def explain(self, partner_id: str) -> str:
        """Return a report of a partner's phones, callbacks, unfinished messages and likely causes."""
        ...


class SnapshotError(Exception):
    """A snapshot cannot be created, read or found; the text has the reason and the way to fix it."""


class UnknownSnapshot(SnapshotError):
    """No snapshot has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no snapshot called {name!r}")


class SnapshotBusy(SnapshotError):
    """A snapshot was not created because something stayed in flight; the text names it."""


@dataclass(frozen=True)
class Snapshot:
    """A saved state of service and simulator."""

    name: str
    at_ms: int  # the virtual time at which it was saved
    size_bytes: int  # of its file


class SnapshotStore(Protocol):
    """Saves and restores the state of service and simulator."""

    async def snapshots(self) -> list[Snapshot]:
        """Return the snapshots, by name."""
        ...

    async def save(self, name: str) -> Snapshot:
        """Save a consistent state of both sides under a name.

        Raises:
            SnapshotBusy: something stays in flight; the text names it.
        """
        ...

    async def load(self, name: str) -> None:
        """Restore a snapshot of both sides, the clock included.

        Raises:
            SnapshotError: no snapshot has this name, or it cannot be used here.
        """
        ...

    async def drop(self, name: str) -> None:
        """Delete a snapshot.

        Raises:
            UnknownSnapshot: no snapshot has this name.
        """
        ...

    def file_of(self, name: str) -> Path:
        """Return the path of a snapshot's file.

        Raises:
            UnknownSnapshot: no snapshot has this name.
        """
        ...

    async def reset(self) -> None:
        """Restore both sides to the seed."""
        ...
