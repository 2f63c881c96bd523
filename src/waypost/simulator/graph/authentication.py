"""The Graph side's calls about AUTHENTICATION templates in many languages at once."""

from typing import Any, Final

from waypost.base.json_values import integer_or_none, list_or_none, objects_in
from waypost.simulator.accounts.accounts import Account
from waypost.simulator.errors import bad_parameter
from waypost.simulator.languages import LANGUAGES
from waypost.simulator.requests import Call, loose_value
from waypost.simulator.services import Parts
from waypost.simulator.templates.checks import check_draft
from waypost.simulator.templates.preset_texts import with_preset_texts
from waypost.simulator.templates.template import Template

_CATEGORY: Final = "AUTHENTICATION"
_LANGUAGES_SHOWN: Final = ("en_US",)
_OWN_TEXTS: Final = ("text", "autofill_text")


async def upsert_templates(parts: Parts, call: Call, account: Account) -> dict[str, Any]:
    """Make or change a template in each of some languages; its texts are the operator's.

    Every language is checked before the first is written.

    Source: facts 2.1, "upsert_message_templates".
    """
    fields = dict(call.fields)
    languages = _languages(fields.pop("languages", None))
    if not languages:
        raise bad_parameter("The parameter languages is required.")
    if str(fields.get("category", "")).upper() != _CATEGORY:
        raise bad_parameter(f"Param category must be one of {{{_CATEGORY}}}.")
    for component in objects_in(fields.get("components")):
        for button in objects_in(component.get("buttons")):
            if any(button.get(member) for member in _OWN_TEXTS):
                raise bad_parameter("Param text and autofill_text are the operator's own here.")
    for language in languages:
        check_draft({**fields, "language": language})
    shown = [await _upsert(parts, account, {**fields, "language": one}) for one in languages]
    return {
        "data": [
            {
                "id": one.template_id,
                "status": one.status,
                "language": one.language,
                "category": one.category,  # in no page; a public client reads it
            }
            for one in shown
        ]
    }


async def preview_templates(_parts: Parts, call: Call, _account: Account) -> dict[str, Any]:
    """How the operator's texts read. They are English here, whatever language is asked for.

    Source: facts 2.1, "message_template_previews".
    """
    query = call.query
    if query.get("category", "").upper() != _CATEGORY:
        raise bad_parameter(f"Param category must be one of {{{_CATEGORY}}}.")
    kinds = _texts(query.get("button_types", "OTP"))
    if any(kind.upper() != "OTP" for kind in kinds):
        raise bad_parameter("Param button_types must be one of {OTP}.")
    recommends = query.get("add_security_recommendation", "").lower() in ("true", "1")
    body = {"type": "BODY", "add_security_recommendation": recommends}
    minutes = query.get("code_expiration_minutes")
    footer: list[dict[str, Any]] = []
    if minutes is not None:
        expiry = integer_or_none(minutes)
        if expiry is None or not 1 <= expiry <= 90:
            raise bad_parameter("Param code_expiration_minutes must be from 1 to 90.")
        footer = [{"type": "FOOTER", "code_expiration_minutes": expiry}]
    shown = {one["type"]: one["text"] for one in with_preset_texts(_CATEGORY, [body, *footer])}
    preview = {"body": shown["BODY"].replace("*", "")}
    preview |= {"footer": shown["FOOTER"]} if footer else {}
    buttons = [{"text": "Copy code", "autofill_text": "Autofill"}]
    languages = _languages(query.get("languages")) or list(_LANGUAGES_SHOWN)
    return {"data": [{**preview, "buttons": buttons, "language": one} for one in languages]}


async def _upsert(parts: Parts, account: Account, fields: dict[str, Any]) -> Template:
    key = (account.waba_id, str(fields.get("name")), str(fields["language"]))
    known = parts.templates.by_key.get(key)
    if known is None:
        return await parts.templates.create(account.waba_id, fields)
    changes = {name: fields[name] for name in ("components", "message_send_ttl_seconds") if name in fields}
    return await parts.templates.edit(known, changes)


def _languages(given: object) -> list[str]:
    languages = _texts(given) if isinstance(given, str) else [str(one) for one in list_or_none(given) or ()]
    for language in languages:
        if language not in LANGUAGES:
            raise bad_parameter(f"Param languages must be supported language codes - got {language!r}.")
    return list(dict.fromkeys(languages))


def _texts(text: str) -> list[str]:
    """A list of the query: a JSON array, or texts with commas between them."""
    given = list_or_none(loose_value(text))
    words = text.strip("[]").split(",") if given is None else map(str, given)
    return [word for word in (one.strip().strip("'\"") for one in words) if word]
