"""Control of the simulator by a test: the clock that it shares with the service, and its faults."""

from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from pytest_waypost.client import ApiResponseError, BlockingApiClient, is_api_error
from pytest_waypost.partner_setup import Tenancy

__tracebackhide__ = is_api_error

ADVANCE_TIMEOUT_S: Final = 70
"""Real time for one request: longer than the simulator takes for one step of an advance."""
IDLE_ADVANCE_MS: Final = 100
"""Longer than a message takes to reach a phone of `waypost dev`."""


class TimeMachine:
    """Virtual time for everything that waits: windows, reviews, retries, expiries.

    All tests of one process share it. Time never goes back: after a test has advanced it, the next test
    begins later, with its own partner, for whom no time has passed. A clock that a test has frozen or sped
    up runs at normal speed again when the test is over.
    """

    def __init__(self, control: BlockingApiClient) -> None:
        self._control = control
        self._is_changed = False

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Advance the clock, and return when everything that became due has happened.

        The clock stops at each due time on the way, so that events happen in their natural order:
        a retry before its expiry, a review before the window closes.

        Returns:
            The time of the clock after that.
        """
        all_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        return self._advance(round(all_s * 1000))

    def wait_until_idle(self) -> datetime:
        """Return when service and simulator are idle; for assertions that something did not happen.

        Advances the clock by a tenth of a second, so that messages on their way to a phone arrive.
        """
        return self._advance(IDLE_ADVANCE_MS)

    def freeze(self) -> datetime:
        """Freeze the clock: nothing becomes due by itself. It can still be advanced."""
        self._is_changed = True
        return self._change("freeze", {})

    def run(self, factor: float = 1.0) -> datetime:
        """Let the clock run at a multiple of real time."""
        self._is_changed = True
        return self._change("run", {"factor": factor})

    @property
    def now(self) -> datetime:
        """The current time of the clock, which all rules use."""
        return _parse_time(self._control.json("GET", "/clock"))

    def restore_speed(self) -> None:
        """Let the clock run at normal speed again, if this test has changed that."""
        if self._is_changed:
            self._change("run", {"factor": 1.0})
            self._is_changed = False

    def _advance(self, ms: int) -> datetime:
        """Advance step by step: the simulator limits the real time of one request."""
        response = self._post("advance", {"ms": ms})
        while not response["is_complete"]:
            response = self._post("advance", {"ms": response["left_ms"]})
        return _parse_time(response)

    def _change(self, action: str, body: dict[str, Any]) -> datetime:
        return _parse_time(self._post(action, body))

    def _post(self, action: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._control.json("POST", f"/clock/{action}", body, timeout_s=ADVANCE_TIMEOUT_S)


def _parse_time(view: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(view["now_ms"] / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Fault:
    """An armed fault; as a context manager it is disarmed at the end.

    Attributes:
        id: the simulator's.
    """

    id: str
    control: BlockingApiClient

    @property
    def hits(self) -> int:
        """Number of times it has been applied."""
        response: dict[str, Any] = self.control.json("GET", f"/faults/{self.id}")
        return int(response.get("fault", response)["hits"])

    def disarm(self) -> None:
        """Disarm it; does nothing if that has happened already."""
        try:
            self.control.json("DELETE", f"/faults/{self.id}")
        except ApiResponseError as error:
            if error.status != 404:
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.disarm()


def arm_fault(
    tenancy: Tenancy,
    *,
    call: str,
    webhook: str,
    condition: dict[str, Any],
    effect: dict[str, Any],
    phone: str,
    template: str,
) -> Fault:
    """Arm a fault for the calls and webhooks of one partner's account.

    Raises:
        ApiResponseError: there is no such call, webhook or effect; the text names the valid ones.
    """
    body: dict[str, Any] = {
        "on": "webhook" if webhook else "call",
        "waba_id": tenancy.names.waba_id,
        "when": condition,
        "what": effect,
        **({"webhook": webhook} if webhook else {"call": call or "*"}),
        **({"phone": phone} if phone else {}),
        **({"template": template} if template else {}),
    }
    control = tenancy.service.control
    [view] = control.json("POST", "/faults", body)["faults"]
    return Fault(str(view["id"]), control)


def fault_condition(*, next: int | None, every: int | None, probability: float | None) -> dict[str, Any]:
    """Return the member `condition` of a fault for the control API; without an argument: always.

    Raises:
        ValueError: more than one argument is given.
    """
    conditions = {"next": next, "every": every, "probability": probability}
    chosen = {name: value for name, value in conditions.items() if value is not None}
    if len(chosen) > 1:
        raise ValueError(f"a fault has one of next, every and probability; not {', '.join(chosen)}")
    return chosen or {"always": True}
