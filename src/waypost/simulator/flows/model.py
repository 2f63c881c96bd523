"""A flow: its statuses, its screens, and the validation of its JSON text."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from waypost.base.error_texts import json_error_text
from waypost.base.json_values import list_of, object_of, object_or_none, text_or_none
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

DRAFT: Final = "DRAFT"
PUBLISHED: Final = "PUBLISHED"
DEPRECATED: Final = "DEPRECATED"
BLOCKED: Final = "BLOCKED"
THROTTLED: Final = "THROTTLED"

# Source: the operator's page "Flows API", categories.
FLOW_CATEGORIES: Final = (
    "SIGN_UP",
    "SIGN_IN",
    "APPOINTMENT_BOOKING",
    "LEAD_GENERATION",
    "CONTACT_US",
    "CUSTOMER_SUPPORT",
    "SURVEY",
    "OTHER",
)
MAX_FLOW_ASSET_BYTES: Final = 10 * 1024 * 1024
_VERSION: Final = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_SCREEN_ID: Final = re.compile(r"[A-Za-z_]{1,80}")
_RESERVED_SCREEN: Final = "SUCCESS"


class Flow(msgspec.Struct, frozen=True):
    """A flow of a business account.

    `asset` is the JSON text of its screens; empty until one is uploaded. `errors` are its validation errors.
    """

    flow_id: str
    waba_id: str
    name: str
    categories: list[str]
    status: str = DRAFT
    asset: str = ""
    endpoint_uri: str = ""
    created_ms: int = 0
    updated_ms: int = 0
    errors: list[dict[str, Any]] = []

    @property
    def content(self) -> dict[str, Any]:
        """The asset as an object; empty if there is none."""
        try:
            return object_of(json.loads(self.asset))
        except (ValueError, RecursionError):
            return {}

    @property
    def screens(self) -> list[str]:
        """The ids of its screens, in order."""
        ids = [text_or_none(screen.get("id")) for screen in map(object_of, list_of(self.content.get("screens")))]
        return [screen_id for screen_id in ids if screen_id]

    @property
    def is_sendable(self) -> bool:
        """True if a message may open it without the `mode` `draft`."""
        return self.status == PUBLISHED


FLOWS: Final = StoredKind("flow", Flow)


def account_flows(reader: SimulatorState | Transaction, waba_id: str) -> list[Flow]:
    """Return an account's flows, oldest first."""
    return [flow for flow in list(reader.values(FLOWS).values()) if flow.waba_id == waba_id]


def find_flow(reader: SimulatorState | Transaction, flow_id: str, waba_id: str) -> Flow | None:
    """Return an account's flow; None if it is unknown or another account's."""
    flow = reader.values(FLOWS).get(flow_id)
    return flow if flow is not None and flow.waba_id == waba_id else None


def find_flow_by_name(reader: SimulatorState | Transaction, name: object, waba_id: str) -> Flow | None:
    """Return an account's flow by name; None if there is none."""
    return next((flow for flow in account_flows(reader, waba_id) if flow.name == name), None)


def validation_errors(asset: str) -> list[dict[str, Any]]:
    """Return the validation errors of a flow's JSON text; empty if it can be published.

    Source: the operator's page "Flows API", `validation_errors`; the rules are the first of its
    page "Flow JSON": a version, screens, and unique ids of the screens.
    """
    if not asset:
        return [_validation_error("MISSING_FLOW_JSON", "The flow has no JSON yet.")]
    try:
        content = object_or_none(json.loads(asset))
    except json.JSONDecodeError as error:
        return [
            _validation_error(
                "INVALID_JSON", f"The text {json_error_text(error)}.", line=error.lineno, column=error.colno
            )
        ]
    except (ValueError, RecursionError):
        return [_validation_error("INVALID_JSON", "The JSON text cannot be read.")]
    if content is None:
        return [_validation_error("INVALID_PROPERTY_TYPE", "Expected an object.")]
    return list(_content_errors(content))


def _content_errors(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    version = content.get("version")
    if version is None:
        yield _validation_error("MISSING_REQUIRED_PROPERTY", "The property 'version' is required.")
    elif not isinstance(version, str) or not _VERSION.fullmatch(version):
        yield _validation_error("INVALID_PROPERTY_VALUE", "The property 'version' must look like '7.0'.", "version")
    screens = list_of(content.get("screens"))
    if not screens:
        yield _validation_error("MISSING_REQUIRED_PROPERTY", "The property 'screens' must have a screen.", "screens")
    screen_ids: set[str] = set()
    for index, screen in enumerate(screens):
        screen_id = object_of(screen).get("id")
        path = f"screens[{index}].id"
        if not isinstance(screen_id, str) or not _SCREEN_ID.fullmatch(screen_id):
            yield _validation_error("INVALID_PROPERTY_VALUE", "A screen's id has letters and underscores.", path)
        elif screen_id == _RESERVED_SCREEN:
            yield _validation_error("INVALID_SCREEN_ID", f"The id {_RESERVED_SCREEN} is reserved.", path)
        elif screen_id in screen_ids:
            yield _validation_error("DUPLICATE_SCREEN_ID", f"There are two screens {screen_id}.", path)
        else:
            screen_ids.add(screen_id)


def _validation_error(error: str, message: str, path: str = "", *, line: int = 1, column: int = 1) -> dict[str, Any]:
    position = {"line_start": line, "line_end": line, "column_start": column, "column_end": column}
    pointers = [{**position, "path": path}] if path else []
    return {"error": error, "error_type": "FLOW_JSON_ERROR", "message": message, **position, "pointers": pointers}
