"""Readers of responses about a number's names and public key. Tolerant: a missing or invalid value becomes an empty one."""

from typing import Any

from waypost.base.json_values import list_of, object_of, objects_in
from waypost.domain.direct_calls.call import OperatorCall, RawObject
from waypost.domain.direct_calls.names import DisplayName, PublicKey
from waypost.operators.cloud.tolerant_json import parse_text

_AnyCall = OperatorCall[Any]


def display_name(response: dict[str, Any], _: _AnyCall) -> DisplayName:
    """Return the display name of a number. Source: the operator's page "Display names"."""
    return DisplayName(
        verified_name=parse_text(response.get("verified_name")),
        verified_status=parse_text(response.get("name_status")),
        requested_name=parse_text(response.get("new_display_name")),
        requested_status=parse_text(response.get("new_name_status")),
    )


def official_status(response: dict[str, Any], _: _AnyCall) -> str:
    """Return the status of an official account. Source: the operator's page "Official business accounts"."""
    return parse_text(object_of(response.get("official_business_account")).get("oba_status"))


def username(response: dict[str, Any], _: _AnyCall) -> RawObject:
    """Return a username and its status, without other members. Source: the operator's page "Business usernames"."""
    return RawObject({name: parse_text(response[name]) for name in ("status", "username") if name in response})


def username_suggestions(response: dict[str, Any], _: _AnyCall) -> list[str]:
    """Return the suggested usernames of all objects in the list."""
    names = [
        name for item in objects_in(list_of(response.get("data"))) for name in list_of(item.get("username_suggestions"))
    ]
    return [name for name in names if isinstance(name, str)]


def public_key(response: dict[str, Any], _: _AnyCall) -> PublicKey:
    """Return a public key; the operator shows it in a list of one, older versions in the object itself."""
    members = next(iter(objects_in(list_of(response.get("data")))), response)
    return PublicKey(
        parse_text(members.get("business_public_key")), parse_text(members.get("business_public_key_signature_status"))
    )
