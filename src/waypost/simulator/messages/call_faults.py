"""Faults of calls: whether a call is carried out, and how its response is changed."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.errors import TITLES, GraphApiError
from waypost.simulator.faults.fault import ArmedFault, FaultSubject
from waypost.simulator.faults.faults import Faults
from waypost.simulator.phones.phones import Phones, phone_digits
from waypost.simulator.requests import Call, Download
from waypost.simulator.templates.template import SimulatedTemplate
from waypost.simulator.webhooks.faulted_responses import CallOutcome, FaultedResponse

CallWork = Callable[[Call], Awaitable[dict[str, Any] | Download]]


class InjectedError(GraphApiError):
    """An error caused by a fault; sent as the fault defines it, whatever the settings are."""


class CallFaults:
    """Applies the armed faults to each call, once the simulator knows its subject."""

    def __init__(self, faults: Faults, accounts: Accounts, phones: Phones) -> None:
        self._faults = faults
        self._accounts = accounts
        self._phones = phones

    async def carry_out(
        self, call: Call, name: str, waba_id: str, target: object, work: CallWork
    ) -> dict[str, Any] | Download | FaultedResponse:
        """Carry out a call, unless a fault prevents it, and return its result.

        Args:
            call: with its fields read, if it has any.
            name: see `call_names`.
            waba_id: of the call's account; empty if it has none.
            target: the object that the call is about.
            work: carries out the call.

        Raises:
            GraphApiError: the call's own error, or one caused by a fault.
        """
        if not self._faults.armed("call"):
            return await work(call)
        fault = await self._faults.select_call_fault(self._subject(call, name, waba_id, target))
        if fault is None:
            return await work(call)
        match fault.fault_kind.name:
            case "error":
                raise build_injected_error(fault)
            case "fail":
                return await work(replace(call, fail_code=fault.value))
            case _:
                return FaultedResponse(fault, await _run_call(fault, call, work))

    def _subject(self, call: Call, name: str, waba_id: str, target: object) -> FaultSubject:
        account = self._accounts.by_id.get(waba_id)
        number = self._accounts.numbers.get(getattr(target, "phone_number_id", ""))
        phone = self._phones.find_number(phone_digits(call.fields.get("to")) or "")
        return FaultSubject(
            name=name,
            app=call.app_id or (account.app_id if account else ""),
            waba_id=waba_id,
            number=(number.phone_number_id, number.phone_number) if number else (),
            phone=phone,
            template=_find_template_name(call.fields, target),
            subject=phone or call.object_id,
        )


def build_injected_error(fault: ArmedFault) -> InjectedError:
    """Return the error of a fault of kind `error`. Source: facts 5.1, 5.2."""
    details, code = fault.effect, int(fault.value)
    status, title = TITLES.get(code, (400, "An error occurred"))
    error: dict[str, Any] = {"message": f"(#{code}) {title}", "type": "OAuthException", "code": code}
    if "subcode" in details:
        error["error_subcode"] = details["subcode"]
    if "details" in details:
        error["error_data"] = {"messaging_product": "whatsapp", "details": details["details"]}
    return InjectedError(details.get("status", status), error, retry_after_s=details.get("retry_after_s"))


async def _run_call(fault: ArmedFault, call: Call, work: CallWork) -> CallOutcome | None:
    """Return the call's result or error, if it is carried out: an error too may be sent late or lost."""
    if not _is_carried_out(fault):
        return None
    try:
        return await work(call)
    except GraphApiError as error:
        return error


def _is_carried_out(fault: ArmedFault) -> bool:
    match fault.fault_kind.name:
        case "reset":
            return fault.value == "after"
        case "garbage":
            return bool(fault.effect.get("processed", False))
        case _:
            return bool(fault.effect.get("processed", True))


def _find_template_name(fields: dict[str, Any], target: object) -> str:
    if isinstance(target, SimulatedTemplate):
        return target.name
    content = object_or_none(fields.get("template"))
    return text_or_none(content.get("name") if content else fields.get("name")) or ""
