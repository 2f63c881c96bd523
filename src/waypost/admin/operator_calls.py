"""The door's calls about operators: accounts, numbers, webhooks, the switch, and the doctor."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request

from waypost.admin.actions import Office
from waypost.admin.doctor.examination import examine, examine_for
from waypost.admin.operator_accounts import (
    AccountChange,
    Standing,
    add_business_account,
    callback_url,
    change_operator_account,
    list_numbers,
    standings,
    subscribe,
)
from waypost.admin.reading import read_body
from waypost.admin.switching import Switched, SwitchWish, switch_app
from waypost.domain.refusals import Reason, Refused

Call = Callable[[Request], Awaitable[Any]]


class _NewBusinessAccount(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    partner_id: int
    operator_account_id: str
    namespace: str | None = None


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


class _Switch(msgspec.Struct, forbid_unknown_fields=True):
    operator_account_id: str
    business_account_id: str | None = None
    phone_number_id: str | None = None
    submit_templates: bool = False


class OperatorCalls:
    """Plain calls; the door guards them."""

    def __init__(self, office: Office) -> None:
        self._office = office

    def table(self) -> tuple[tuple[str, str, Call], ...]:
        """Method, path and call of each."""
        # fmt: off
        return (
            ("GET",    "/admin/operator-accounts",                        self._accounts),
            ("PUT",    "/admin/operator-accounts/{account_id}",           self._put_account),
            ("GET",    "/admin/operator-accounts/{account_id}/numbers",   self._numbers),
            ("POST",   "/admin/business-accounts",                        self._add_business_account),
            ("POST",   "/admin/business-accounts/{account_id}/subscribe", self._subscribe),
            ("PUT",    "/admin/apps/{app_id}/operator",                   self._switch),
            ("GET",    "/admin/doctor",                                   self._doctor),
        )
        # fmt: on

    async def _accounts(self, _request: Request) -> Any:
        return {"operator_accounts": [_standing_view(self._office, one) for one in await standings(self._office)]}

    async def _put_account(self, request: Request) -> Any:
        given = await read_body(request, dict[str, str | None])
        fields = {name: value for name, value in given.items() if value is not None}
        change = AccountChange(fields.pop("kind", None), fields.pop("base_url", None), fields)
        account_id = str(request.path_params["account_id"])
        account, made = await change_operator_account(self._office, account_id, change)
        told = {
            "id": account.id,
            "webhook_path": f"/operator/webhook/{account.id}",
            "callback_url": callback_url(self._office, account.id),
        }
        return told | made

    async def _numbers(self, request: Request) -> Any:
        business_account_id = request.query_params.get("business_account_id", "")
        if not business_account_id:
            raise Refused(
                Reason.FIELD_MISSING, "business_account_id is needed: the operator's id of a business account."
            )
        account_id = str(request.path_params["account_id"])
        return {"numbers": await list_numbers(self._office, account_id, business_account_id)}

    async def _add_business_account(self, request: Request) -> Any:
        given = await read_body(request, _NewBusinessAccount)
        account = await add_business_account(
            self._office, given.id, given.partner_id, given.operator_account_id, given.namespace
        )
        return {"id": account.id, "namespace": account.namespace}

    async def _subscribe(self, request: Request) -> Any:
        await read_body(request, _Nothing)
        account_id = str(request.path_params["account_id"])
        return {"id": account_id, "callback_url": await subscribe(self._office, account_id)}

    async def _switch(self, request: Request) -> Any:
        given = await read_body(request, _Switch)
        wish = SwitchWish(**msgspec.structs.asdict(given))
        switched = await switch_app(self._office, str(request.path_params["app_id"]), wish)
        return _switch_view(switched, callback_url(self._office, wish.operator_account_id))

    async def _doctor(self, request: Request) -> Any:
        text = request.query_params.get("partner_id")
        if text is None:
            findings = await examine(self._office)
        elif text.isascii() and text.isdecimal() and len(text) < 19:
            findings = await examine_for(self._office, int(text))
        else:
            raise Refused(Reason.FIELD_BROKEN, "partner_id must be a number.")
        return {"findings": [msgspec.to_builtins(one) for one in findings]}


def _standing_view(office: Office, standing: Standing) -> dict[str, Any]:
    """Without a secret."""
    account = standing.account
    shown = [one.name for one in office.operators.of(account).fields if not one.is_secret]
    return {
        "id": account.id,
        "kind": account.kind,
        "base_url": account.base_url,
        **{name: account[name] for name in shown},
        "callback_url": callback_url(office, account.id),
        "business_accounts": [
            {
                "id": owner.id,
                "partner_id": owner.partner_id,
                "namespace": owner.namespace,
                "apps": [
                    {
                        "id": app.id,
                        "name": app.name,
                        "phone_number": app.phone_number,
                        "phone_number_id": app.phone_number_id,
                    }
                    for app in apps
                ],
            }
            for owner, apps in standing.businesses
        ],
    }


def _switch_view(switched: Switched, address: str) -> dict[str, Any]:
    return {
        "operator_account_id": switched.account.operator_account_id,
        "left": switched.left,
        "business_account_id": switched.account.id,
        "namespace": switched.account.namespace,
        "callback_url": address,
        "apps": [
            {"id": app.id, "name": app.name, "phone_number": app.phone_number, "phone_number_id": app.phone_number_id}
            for app in switched.apps
        ],
        "templates_submitted": switched.submitted,
        "templates_missing": [
            {
                "id": template.id,
                "element_name": template.draft.element_name,
                "language_code": template.draft.language_code,
                "status": template.status.value,
            }
            for template in switched.missing
        ],
    }
