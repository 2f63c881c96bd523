"""Faults of the simulator: armed for the partner of one test, and disarmed at its end."""

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from waypost.client.blocking_client import BlockingApiClient
from waypost.client.responses import ApiResponseError, is_api_error
from waypost.testing.partner_setup import Tenancy

__tracebackhide__ = is_api_error


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
