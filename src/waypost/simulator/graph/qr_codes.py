"""Graph API calls for the QR codes of a number. Source: the operator's page "QR Codes and Short Links"."""

import hashlib
import re
from typing import Any, Final

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.accounts.qr_codes import QrCode
from waypost.simulator.errors import bad_parameter
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.lists import page
from waypost.simulator.requests import GRAPH_SUCCESS, Call
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()


_IMAGE_FORMATS: Final = ("SVG", "PNG")
_IMAGE_FIELD: Final = re.compile(r"qr_image_url\.format\((\w+)\)")
_SHOWN_FIELDS: Final = frozenset({"code", "prefilled_message", "deep_link_url"})
_NEWEST_FIRST_MS: Final = 10**15  # a time of creation counts down from here, because lists are in ascending order


@operation("qr_codes.create", "POST", Number, "message_qrdls")
async def save_qr_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Create a QR code, or with `code` change one; the image is in the response if its format is requested."""
    if "code" in call.fields:
        return _view(await services.qr_codes.update(number.phone_number_id, str(call.fields["code"]), call.fields))
    image_format = call.fields.get("generate_qr_image")
    if image_format is not None:
        image_format = _check_format("generate_qr_image", str(image_format))
    return _view(await services.qr_codes.create(number.phone_number_id, call.fields), image_format)


@operation("qr_codes.change", "POST", Number, "message_qrdls/{}")
async def update_qr_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Change the QR code that the path names, as public clients do."""
    return _view(await services.qr_codes.update(number.phone_number_id, call.names[0], call.fields))


@operation("qr_codes.list", "GET", Number, "message_qrdls")
async def list_qr_codes(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return a number's QR codes, newest first, or the one of a `code`."""
    return _list_codes(services, call, number, call.query.get("code"))


@operation("qr_codes.read", "GET", Number, "message_qrdls/{}")
async def show_qr_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Return a list of one QR code; an empty one if the number has no such code, as the public client expects."""
    return _list_codes(services, call, number, call.names[0])


@operation("qr_codes.delete", "DELETE", Number, "message_qrdls/{}")
async def delete_qr_code(services: SimulatorServices, call: Call, number: Number) -> dict[str, Any]:
    """Delete a QR code."""
    await services.qr_codes.delete(number.phone_number_id, call.names[0])
    return GRAPH_SUCCESS


def _list_codes(services: SimulatorServices, call: Call, number: Number, code: str | None) -> dict[str, Any]:
    image_format, has_time = _read_fields(call)
    codes = [item for item in services.qr_codes.number_codes(number.phone_number_id) if code in (None, item.code)]
    return page(
        call,
        codes,
        lambda item: f"{_NEWEST_FIRST_MS - item.created_ms:015d} {item.code}",
        lambda item: {**_view(item, image_format), **({"creation_time": item.created_ms // 1000} if has_time else {})},
    )


def _read_fields(call: Call) -> tuple[str | None, bool]:
    """Return the format of the image that `fields` requests, and whether it requests the time of creation."""
    names = [name.strip() for name in call.query.get("fields", "").split(",") if name.strip()]
    image_format: str | None = None
    for name in names:
        if image := _IMAGE_FIELD.fullmatch(name):
            image_format = _check_format("format", image[1])
        elif name == "qr_image_url":
            raise bad_parameter("Field qr_image_url needs a format, such as qr_image_url.format(SVG).")
        elif name not in _SHOWN_FIELDS and name != "creation_time":
            kind = "WhatsAppBusinessMessageQRDL"
            raise bad_parameter(f"Tried accessing nonexisting field ({name}) on node type ({kind})")
    return image_format, "creation_time" in names


def _check_format(name: str, text: str) -> str:
    image_format = text.upper()
    if image_format not in _IMAGE_FORMATS:
        raise bad_parameter(f"Param {name} must be one of {{{', '.join(_IMAGE_FORMATS)}}}.")
    return image_format


def _view(qr_code: QrCode, image_format: str | None = None) -> dict[str, Any]:
    """Return a QR code as the operator shows it; nothing is at the URL of its image."""
    link = f"https://wa.me/message/{qr_code.code}"
    view = {"code": qr_code.code, "prefilled_message": qr_code.prefilled_message, "deep_link_url": link}
    if image_format is not None:
        name = f"{hashlib.sha256(link.encode()).hexdigest()[:32]}.{image_format.lower()}"
        view["qr_image_url"] = f"https://scontent.whatsapp.net/m1/v/t6/{name}"
    return view
