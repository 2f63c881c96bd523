"""Faults that a test asks the simulator for: armed for one partner, and disarmed when they have done."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.responses import ApiResponseError, is_told
from waypost.testing.partner_setup import Tenancy

__tracebackhide__ = is_told


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that is armed; as a context manager it is disarmed at the end.

    Attributes:
        id: the simulator's.
    """

    id: str
    control: BlockingApiClient

    @property
    def hits(self) -> int:
        """How often it has struck."""
        seen: dict[str, Any] = self.control.json("GET", f"/faults/{self.id}")
        return int(seen.get("fault", seen)["hits"])

    def disarm(self) -> None:
        """Take it away; nothing happens when it has gone already."""
        try:
            self.control.json("DELETE", f"/faults/{self.id}")
        except ApiResponseError as refused:
            if refused.status != 404:
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.disarm()


def arm(
    tenancy: Tenancy, *, call: str, webhook: str, when: dict[str, Any], what: dict[str, Any], phone: str, template: str
) -> Fault:
    """Arm a fault for what one partner's account does and hears.

    Raises:
        DoorRefused: there is no such call, webhook or kind; the text names what there is.
    """
    wish: dict[str, Any] = {
        "on": "webhook" if webhook else "call",
        "waba_id": tenancy.names.waba_id,
        "when": when,
        "what": what,
        **({"webhook": webhook} if webhook else {"call": call or "*"}),
        **({"phone": phone} if phone else {}),
        **({"template": template} if template else {}),
    }
    control = tenancy.service.control
    [armed] = control.json("POST", "/faults", wish)["faults"]
    return Fault(str(armed["id"]), control)


def when_of(*, next: int | None, every: int | None, probability: float | None) -> dict[str, Any]:
    """How often a fault strikes, as the control door says it; none of them means always.

    Raises:
        ValueError: more than one is given.
    """
    given = {"next": next, "every": every, "probability": probability}
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) > 1:
        raise ValueError(f"a fault has one of next, every and probability; not {', '.join(chosen)}")
    return chosen or {"always": True}
