"""Steps of a person in a Flow, as requests and scripts write them."""

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from waypost.simulator.apis.field_types import FileName, Id, Name, accepts

MAX_STEPS: Final = 100


class FlowFileStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file for a picker: its content in base64, or the id of a file of `POST /control/media`."""

    name: Name
    file_name: FileName = ""
    mime_type: Annotated[str, Meta(max_length=100)] = ""
    content: bytes = b""
    media_id: Id | None = None


class FlowStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of a person: exactly one of its members.

    `fill` has values of inputs by name, `choose` options to be added to those that are chosen. `upload` adds a file to a
    picker, `remove` takes one away by its `media_id`. `tap` is the path or the text of a button, link, item or option.
    """

    fill: dict[str, Any] | UnsetType = UNSET
    choose: dict[str, str] | UnsetType = UNSET
    upload: FlowFileStep | UnsetType = UNSET
    remove: dict[str, str] | UnsetType = UNSET
    tap: Name | UnsetType = UNSET
    back: Annotated[bool, accepts("true")] | UnsetType = UNSET
    refresh: Annotated[bool, accepts("true")] | UnsetType = UNSET
    close: Annotated[bool, accepts("true")] | UnsetType = UNSET
