"""QR codes of numbers: short links that open a chat with a prefilled message.

Source: the operator's page "QR Codes and Short Links".
"""

import base64
import hashlib
import re
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from waypost.simulator.apis.errors import bad_parameter
from waypost.simulator.apis.parameters import is_missing, one_of, read_parameters
from waypost.simulator.apis.requests import GRAPH_SUCCESS, Call
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.nodes import page, requested_fields, unknown_field
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

operation = GraphOperations()

_MAX_QR_CODES: Final = 2000
_MAX_MESSAGE_CHARS: Final = 140
_CODE_CHARS: Final = 14
_IMAGE_FIELD: Final = re.compile(r"qr_image_url\.format\((\w+)\)")
_SHOWN_FIELDS: Final = frozenset({"code", "prefilled_message", "deep_link_url", "creation_time"})
_NEWEST_FIRST_MS: Final = 10**15  # a time of creation counts down from here, because lists are in ascending order
_check_format: Final = one_of("SVG", "PNG")


class QrCode(msgspec.Struct, frozen=True):
    """A QR code; `code`, the last part of its short link, is unique among the codes of all numbers."""

    code: str
    prefilled_message: str
    created_ms: int


QR_CODES: Final = StoredKind("qr_code", QrCode)
"""By code, of a number."""


def _check_message(name: str, value: Any) -> str:
    if value is None:
        raise is_missing(name)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_MESSAGE_CHARS:
        raise bad_parameter(f"Param {name} must be a text of 1 to {_MAX_MESSAGE_CHARS} characters.")
    return value


def _read_format(name: str, value: Any) -> str | None:
    return None if value is None else str(_check_format(name, str(value).upper()))


class QrCodeParameters(msgspec.Struct, frozen=True):
    """The parameters of a QR code."""

    prefilled_message: Annotated[str, _check_message]


class NewQrCodeParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a new QR code."""

    generate_qr_image: Annotated[str | None, _read_format] = None
    prefilled_message: Annotated[str, _check_message]


@operation("qr_codes.create", "POST", Number, "message_qrdls")
def save_qr_code(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Create a QR code, or with `code` change one; the image is in the response if its format is requested."""
    if "code" in call.fields:
        return _change(transaction, call, number, str(call.fields["code"]))
    new = read_parameters(NewQrCodeParameters, call.fields)
    if len(transaction.values(QR_CODES, number.phone_number_id)) >= _MAX_QR_CODES:
        raise bad_parameter(f"A phone number has at most {_MAX_QR_CODES} QR codes.")
    random_text = base64.b32encode(bytes.fromhex(transaction.state.ids.secret())).decode()
    code = random_text[: _CODE_CHARS - 1] + "1"  # the operator's samples end so
    qr_code = QrCode(code, new.prefilled_message, transaction.state.clock.now_ms())
    transaction.save(QR_CODES, qr_code, code, number.phone_number_id)
    return _view(qr_code, new.generate_qr_image)


@operation("qr_codes.change", "POST", Number, "message_qrdls/{}")
def update_qr_code(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Change the QR code that the path names, as public clients do."""
    return _change(transaction, call, number, call.names[0])


@operation("qr_codes.delete", "DELETE", Number, "message_qrdls/{}")
def delete_qr_code(transaction: Transaction, call: Call, number: Number) -> dict[str, Any]:
    """Delete a QR code."""
    _find(transaction, number, call.names[0])
    transaction.delete(QR_CODES, call.names[0], number.phone_number_id)
    return GRAPH_SUCCESS


def _change(transaction: Transaction, call: Call, number: Number, code: str) -> dict[str, Any]:
    message = read_parameters(QrCodeParameters, call.fields).prefilled_message
    changed = replace(_find(transaction, number, code), prefilled_message=message)
    transaction.save(QR_CODES, changed, code, number.phone_number_id)
    return _view(changed)


def _find(transaction: Transaction, number: Number, code: str) -> QrCode:
    known = transaction.find(QR_CODES, code, number.phone_number_id)
    if known is None:
        # No page shows the operator's error for it; the text is ours.
        raise bad_parameter("Param code must be the code of one of this phone number's QR codes.")
    return known


def list_qr_codes(state: SimulatorState, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's QR codes, newest first, or that of a code; an empty list if it has none, as clients expect."""
    code = call.names[0] if call.names else call.query.get("code")
    names, image_format = requested_fields(call), None
    for name in names:
        if image := _IMAGE_FIELD.fullmatch(name):
            image_format = _check_format("format", image[1].upper())
        elif name == "qr_image_url":
            raise bad_parameter("Field qr_image_url needs a format, such as qr_image_url.format(SVG).")
        elif name not in _SHOWN_FIELDS:
            raise unknown_field(name, "WhatsAppBusinessMessageQRDL")

    def view(item: QrCode) -> dict[str, Any]:
        time = {"creation_time": item.created_ms // 1000} if "creation_time" in names else {}
        return {**_view(item, image_format), **time}

    codes = [item for item in state.values(QR_CODES, number.phone_number_id).values() if code in (None, item.code)]
    return page(call, codes, lambda item: f"{_NEWEST_FIRST_MS - item.created_ms:015d} {item.code}", view)


def _view(qr_code: QrCode, image_format: str | None = None) -> dict[str, Any]:
    """Return a QR code as the operator shows it; nothing is at the URL of its image."""
    link = f"https://wa.me/message/{qr_code.code}"
    view = {"code": qr_code.code, "prefilled_message": qr_code.prefilled_message, "deep_link_url": link}
    if image_format is not None:
        name = f"{hashlib.sha256(link.encode()).hexdigest()[:32]}.{image_format.lower()}"
        view["qr_image_url"] = f"https://scontent.whatsapp.net/m1/v/t6/{name}"
    return view
