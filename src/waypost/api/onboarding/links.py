"""The link to an app's onboarding page, the origin of its number, and data that its signup shows already filled in."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from msgspec import Struct, defstruct

from waypost.api.apps.settings import set_preferences
from waypost.api.authorisation import Credential
from waypost.api.fields import Field, keep_text
from waypost.api.operation import APP, AppCall, Operations
from waypost.domain.app import (
    MAX_REPLACED_ONBOARDING_LINKS,
    MIGRATION_STATUSES,
    ONBOARDING_LINK_LIFE_MS,
    ONBOARDING_PATH,
)
from waypost.domain.coercion import read_flag
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.store.apps.onboarding import begin_onboarding
from waypost.wire.apps import PREFILLED_FIELDS, MigratedNumber, migrated_number, prefilled_object, read_prefilled
from waypost.wire.responses import Success, success

operation = Operations("ledger 1.3; facts 2", Credential.PARTNER_TOKEN, at_operator=False)


class OnboardingLink(Struct):
    """The link to a page; the flag is read last."""

    regenerate: Annotated[
        bool,
        Field(
            "True replaces the link, also one that has expired.",
            "false",
            read=keep_text,
            errors=(ErrorCode.WRONG_TYPE,),
        ),
    ] = False
    user: Annotated[str, Field("A name of whom the link is for.", "Ada", is_required=True)] = ""
    lang: Annotated[str, Field("The language of the page; it is in English.", "en")] = ""


class PhoneMigration(Struct, rename="camel"):
    """The origin of the number of an app."""

    migration_status: Annotated[
        str,
        Field(
            "META_EMBED_MIGRATION: the number is live elsewhere, and the app is not live yet; MIGRATED_IN: it is live "
            "here already.",
            "META_EMBED_MIGRATION",
            strip=True,
            is_required=True,
        ),
    ] = ""


@operation(
    "GET",
    f"{APP}/onboarding/embed/link",
    success(link=str),
    errors=(ErrorCode.QUERY_EMPTY, ErrorCode.FIELD_MISSING, ErrorCode.LINK_EXPIRED, ErrorCode.TOO_MANY_LINKS),
)
async def get_onboarding_link(call: AppCall, query: OnboardingLink) -> dict[str, Any]:
    """Return the link to the app's onboarding page, which is valid for 5 days; `regenerate` replaces it.

    The page shows anyone with the link whether the app has a number and is live. `lang` is accepted and
    changes nothing: the page is in English.

    Errors in this order: 401, 429, 400 no query or an empty member, 400 no user, 400 the link has expired, 400 it was replaced 40 times.
    """
    services, _, app = call
    if not (query.regenerate or query.user or query.lang) or "" in (
        call.request.query("user"),
        call.request.query("lang"),
    ):
        raise ApiError(ErrorCode.QUERY_EMPTY, "Send user in the query; neither user nor lang may be empty.")
    if not query.user:
        raise missing_parameter("user", "a name of whom the link is for")
    now_ms = services.clock.now_ms()
    created_on_ms = app.preferences.onboarding_link_ms
    if not created_on_ms or read_flag(query.regenerate, "regenerate"):
        replaced = app.preferences.replaced_onboarding_links + (created_on_ms > 0)
        if replaced > MAX_REPLACED_ONBOARDING_LINKS:
            raise ApiError(
                ErrorCode.TOO_MANY_LINKS,
                f"The link was replaced {MAX_REPLACED_ONBOARDING_LINKS} times; no more is possible.",
                text=f"Max Links Already sent, please contact support at {services.public_url}",
            )
        created_on_ms = now_ms
        await set_preferences(services, app, onboarding_link_ms=created_on_ms, replaced_onboarding_links=replaced)
    elif now_ms >= created_on_ms + ONBOARDING_LINK_LIFE_MS:
        raise ApiError(ErrorCode.LINK_EXPIRED, "The link is older than 5 days: regenerate=true replaces it.")
    code = services.secret_box.onboarding_codes(app.id, created_on_ms)[0]
    return {"status": "success", "link": f"{services.public_url}{ONBOARDING_PATH}/{code}"}


@operation(
    "POST",
    f"{APP}/onboarding/phoneMigration",
    success(whatsapp=MigratedNumber),
    errors=(ErrorCode.INVALID_DETAILS,),
    other_app=ErrorCode.APPLICATION_NOT_FOUND,
)
async def set_phone_migration(call: AppCall, fields: PhoneMigration) -> dict[str, Any]:
    """Store that the app's number comes from elsewhere, and return how far its onboarding is.

    The onboarding of an app that has a number begins, or begins again after an error. An app without a number gets one
    from the administrator.

    Errors in this order: 401, 400 no such app, 429, 400 no such status, 400 it contradicts whether the app is live.
    """
    services, status, now_ms = call.services, fields.migration_status, call.services.clock.now_ms()
    if status not in MIGRATION_STATUSES:
        raise ApiError(
            ErrorCode.INVALID_DETAILS,
            f"migrationStatus must be {' or '.join(MIGRATION_STATUSES)}.",
            field="migrationStatus",
        )
    if call.app.live != (status == MIGRATION_STATUSES[1]):
        text = "is live: send MIGRATED_IN" if call.app.live else "is not live yet: send META_EMBED_MIGRATION"
        raise ApiError(ErrorCode.INVALID_DETAILS, f"The app {text}.", field="migrationStatus")
    await set_preferences(services, call.app, migration_status=status, migration_ms=now_ms)
    due_ms = now_ms + services.onboarding_step_ms
    app = await services.database.write(partial(begin_onboarding, app_id=call.app.id, at_ms=now_ms, due_ms=due_ms))
    services.directory.invalidate()
    if app is None:
        raise ApiError(ErrorCode.APPLICATION_NOT_FOUND, "The app has just been deleted.")
    return {"status": "success", "whatsapp": migrated_number(app, services.wallet.currency)}


prefilled_operation = Operations("ledger 1.3", at_operator=False)
Prefilled = defstruct(
    "Prefilled", [(row.name, Annotated[str, Field(row.meaning, row.example)], "") for row in PREFILLED_FIELDS]
)
_operation_on_data = partial(
    prefilled_operation,
    path=f"{APP}/onboarding/embed/prefilled",
    returns=success(appId=str, **{row.name: str for row in PREFILLED_FIELDS}),
    by_key=True,
)


@_operation_on_data("POST", body=Prefilled, errors=(ErrorCode.INVALID_PREFILLED,))
async def set_prefilled_onboarding_data(call: AppCall) -> dict[str, Any]:
    """Store the data, instead of what was stored before, and return it."""
    return await _store(call, read_prefilled(call.request.form_or_json(), {}))


@_operation_on_data("PUT", body=Prefilled, errors=(ErrorCode.INVALID_PREFILLED,))
async def change_prefilled_onboarding_data(call: AppCall) -> dict[str, Any]:
    """Change the named fields, remove empty ones, and return all."""
    return await _store(call, read_prefilled(call.request.form_or_json(), call.app.preferences.prefilled))


@_operation_on_data("GET")
async def show_prefilled_onboarding_data(call: AppCall) -> dict[str, Any]:
    """Return the data; fields that were not set are empty."""
    return prefilled_object(call.app)


@_operation_on_data("DELETE", returns=Success)
async def delete_prefilled_onboarding_data(call: AppCall) -> None:
    """Delete the data. Source: ledger 1.3, `prefilled`; the response's format is ours."""
    await _store(call, {})


async def _store(call: AppCall, fields: Mapping[str, str]) -> dict[str, Any]:
    return prefilled_object(await set_preferences(call.services, call.app, prefilled=fields))
