"""Events of templates, of the business account and of its numbers, from webhook changes."""

from collections.abc import Callable
from typing import Any, Final

from waypost.base.json_values import object_of
from waypost.domain.event import AccountEvent, CategoryEvent, Event, QualityEvent, ReviewEvent
from waypost.domain.phone_number import read_phone_number
from waypost.operators.cloud.tolerant_json import parse_name, parse_seconds, parse_text


def _review(content: dict[str, Any]) -> Event:
    value = object_of(content.get("value"))
    reason = parse_text(value.get("reason"))
    rejection_reason = parse_text(object_of(value.get("rejection_info")).get("reason"))
    return ReviewEvent(
        **_template(content),
        status=parse_text(value.get("event")).upper(),
        reason=rejection_reason or (reason if reason not in ("", "NONE") else None),
        description=parse_text(object_of(value.get("other_info")).get("description")) or None,
        at_s=parse_seconds(content.get("time")),
    )


def _quality(content: dict[str, Any]) -> Event:
    value = object_of(content.get("value"))
    return QualityEvent(**_template(content), quality=parse_text(value.get("new_quality_score")).upper())


def _category(content: dict[str, Any]) -> Event:
    """Return a category event; a notice has `correct_category` and the current one as the new one, a change has both.

    Source: operator's facts 3.3.
    """
    value = object_of(content.get("value"))
    correct = parse_text(value.get("correct_category"))
    new = parse_text(value.get("new_category")).upper()
    return CategoryEvent(
        **_template(content),
        category=new if correct else parse_text(value.get("previous_category")).upper(),
        next_category=correct.upper() if correct else new,
        is_done=not correct,
    )


def account_event(content: dict[str, Any]) -> Event:
    """Return the event of a change that has no event of its own, whatever its field, with its value unchanged.

    A change with the id of one of our numbers, in the metadata or in settings, is about that number.
    An unknown field is read the same way, so that it causes a callback and is not lost.
    """
    value = object_of(content.get("value"))
    objects = [value, object_of(value.get("metadata")), object_of(value.get("phone_number_settings"))]
    ids = [parse_text(source.get("phone_number_id")) for source in objects]
    number = parse_text(value.get("display_phone_number")) or parse_text(value.get("phone_number"))
    shared = parse_text(object_of(value.get("waba_info")).get("waba_id"))
    return AccountEvent(
        business_account_id=parse_text(content.get("business_account_id")),
        field=parse_text(content.get("field")),
        value=content.get("value"),
        phone_number_id=next((number_id for number_id in ids if number_id), None),
        phone_number=read_phone_number(number),
        other_account_id=shared or None,
        operator_template_id=parse_name(value.get("message_template_id")) or None,
        time=content.get("time"),
    )


def _template(content: dict[str, Any]) -> dict[str, Any]:
    value = object_of(content.get("value"))
    return {
        "business_account_id": parse_text(content.get("business_account_id")),
        "operator_template_id": parse_name(value.get("message_template_id")),
        "element_name": parse_text(value.get("message_template_name")),
        "language_code": parse_text(value.get("message_template_language")).replace("-", "_"),
        "raw": {"field": content.get("field"), "value": value, "time": content.get("time")},
    }


CHANGES: Final[
    dict[str, Callable[[dict[str, Any]], Event]]
] = {  # every other field is an account event. Source: operator's facts 3.3
    "message_template_status_update": _review,
    "message_template_quality_update": _quality,
    "template_category_update": _category,
}
