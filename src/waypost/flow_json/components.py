"""The components of Flow JSON, and the other declared objects: their properties, versions and limits.

Source: public pages "Components" and "Flow JSON" for lengths and numbers, which the handset
cuts; public page "Validator of Flow JSON" for everything that the operator refuses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from waypost.flow_json.kinds import (
    ALWAYS,
    ActionKind,
    AnyKind,
    BooleanKind,
    ComponentsKind,
    ConditionKind,
    DateKind,
    EitherKind,
    EnumKind,
    Kind,
    ListKind,
    MapKind,
    NameKind,
    NumberKind,
    ObjectKind,
    PictureKind,
    Property,
    ReferenceKind,
    TextKind,
    TextPattern,
)
from waypost.flow_json.versions import Version


@dataclass(frozen=True)
class Component:
    """A type of component.

    Attributes:
        since: the version that brought it.
        is_input: True if it has a name and a value, `${form.name}`.
        value_type: the JSON type of its value.
        max_per_screen: None if only the number of all components counts.
    """

    type: str
    properties: tuple[Property, ...]
    since: Version = ALWAYS
    is_input: bool = False
    value_type: str = ""
    max_per_screen: int | None = None


MAX_SCREENS: Final = 100
MAX_COMPONENTS: Final = 100
"""On a screen; the operator's page says 50, from which on there is a warning."""
ADVISED_COMPONENTS: Final = 50
MAX_CAROUSELS: Final = 3
"""In a Flow."""
MAX_BRANCHES: Final = 10
"""Routes from a screen."""
MAX_IF_DEPTH: Final = 3
PICKERS: Final = ("PhotoPicker", "DocumentPicker")
DOCUMENT_TYPES: Final = (
    "application/gzip",
    "application/msword",
    "application/pdf",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.oasis.opendocument.presentation",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/x-7z-compressed",
    "application/zip",
    "image/avif",
    "image/gif",
    "image/heic",
    "image/heif",
    "image/jpeg",
    "image/png",
    "image/tiff",
    "image/webp",
    "text/plain",
    "video/mp4",
    "video/mpeg",
)
MAX_FILE_KB: Final = 25600
MAX_FILES: Final = 30
_LETTERS: Final = "only consist of alphabets and underscores"
SCREEN_ID: Final = (TextPattern("[a-zA-Z,_]+", _LETTERS), TextPattern("(?!_+$)[a-zA-Z_]+", _LETTERS, since=(7, 0)))
_CASE_NAME: Final = (TextPattern("[a-zA-Z][a-zA-Z0-9-_]*", "match the pattern '^[a-zA-Z][a-zA-Z0-9-_]*$'"),)
_COLOR: Final = (TextPattern("#[A-Fa-f0-9]{6}", "match the pattern '^#([A-Fa-f0-9]{6})$'"),)

_V4, _V5, _V51, _V6, _V61, _V62, _V63, _V7, _V71 = (
    (4, 0),
    (5, 0),
    (5, 1),
    (6, 0),
    (6, 1),
    (6, 2),
    (6, 3),
    (7, 0),
    (7, 1),
)


def _property(
    name: str, kind: Kind, *, required: bool | Version = False, since: Version = ALWAYS, dynamic: bool = True
) -> Property:
    first = ALWAYS if required is True else required or None
    return Property(name, kind, required=first, is_dynamic=dynamic, since=since)


_UPDATE: Final = ActionKind({"update_data": _V6}, is_selection=True)
_SELECT: Final = ActionKind({"data_exchange": ALWAYS, "update_data": _V6}, is_selection=True)
_EXCHANGE: Final = ActionKind({"data_exchange": ALWAYS}, is_selection=True)
_LINK: Final = ActionKind({"data_exchange": ALWAYS, "navigate": ALWAYS, "open_url": _V6})
_GO: Final = ActionKind({"data_exchange": ALWAYS, "navigate": ALWAYS})
_FINISH: Final = ActionKind({"data_exchange": ALWAYS, "navigate": ALWAYS, "complete": ALWAYS})

_VISIBLE: Final = _property("visible", BooleanKind())
_ENABLED: Final = _property("enabled", BooleanKind())
_REQUIRED: Final = _property("required", BooleanKind())
_NAME: Final = _property("name", NameKind(), required=True, dynamic=False)
_VARIANT: Final = _property("label-variant", EnumKind(("large",)), since=_V7, dynamic=False)
_TEXTS: Final = EitherKind((TextKind(), ListKind(TextKind())))


def _text(name: str, max_chars: int | None = None, *, required: bool | Version = False) -> Property:
    return _property(name, TextKind(max_chars, min_chars=1 if required else 0), required=required)


def _filled(name: str, max_chars: int, *, required: bool | Version = True) -> Property:
    return _property(name, TextKind(max_chars, filled=ALWAYS), required=required)


def _initial(kind: Kind) -> Property:
    return _property("init-value", kind, since=_V4)


def _error(max_chars: int | None = None) -> Property:
    return _property("error-message", TextKind(max_chars), since=_V4)


def _choice(*values: str) -> EnumKind:
    return EnumKind(values)


def _formatted(max_chars: int) -> tuple[Property, ...]:
    """Return the properties of TextBody and TextCaption."""
    text = EitherKind((TextKind(max_chars, filled=ALWAYS), ListKind(TextKind(filled=ALWAYS))))
    return (
        _property("text", text, required=True),
        _property("font-weight", _choice("bold", "italic", "bold_italic", "normal")),
        _property("strikethrough", BooleanKind()),
        _property("markdown", BooleanKind(), since=_V51, dynamic=False),
        _VISIBLE,
    )


def _options(min_items: int, max_items: int, *extra: Property) -> Property:
    """Return `data-source`, with options that have an id and a title."""
    option = (
        _property("id", TextKind(), required=True),
        _property("title", TextKind(30), required=True),
        _property("enabled", BooleanKind()),
        *extra,
        _property("on-select-action", _UPDATE, since=_V6, dynamic=False),
        _property("on-unselect-action", _UPDATE, since=_V6, dynamic=False),
    )
    return _property("data-source", ListKind(ObjectKind(option, "data-source"), min_items, max_items), required=True)


_DESCRIBED: Final = (
    _text("description", 300),
    _text("metadata", 20),
    _property("image", PictureKind(300), since=_V5),
    _property("alt-text", TextKind(filled=ALWAYS), since=_V5),
    _property("color", TextKind(patterns=_COLOR), since=_V5, dynamic=False),
)
_SELECTIONS: Final = (
    _property("on-select-action", _SELECT, dynamic=False),
    _property("on-unselect-action", _UPDATE, since=_V6, dynamic=False),
)
_GROUP: Final = (
    _NAME,
    _filled("label", 30, required=_V4),
    _property("description", TextKind(300), since=_V4),
    _REQUIRED,
    _ENABLED,
    _VISIBLE,
    *_SELECTIONS,
    _error(),
    _property("media-size", _choice("regular", "large"), since=_V5, dynamic=False),
)
_DATES: Final = (_property("min-date", DateKind()), _property("max-date", DateKind()))
_UNAVAILABLE: Final = _property("unavailable-dates", ListKind(DateKind()))


def _selected(min_of_max: int) -> tuple[Property, ...]:
    """Return the limits of a selection of several."""
    return _property("min-selected-items", NumberKind(0)), _property("max-selected-items", NumberKind(min_of_max))


def _two(kind: Kind) -> Kind:
    """Return a value, or one for each end of a range of dates."""
    ends = (_property("start-date", kind), _property("end-date", kind))
    return EitherKind((kind, ObjectKind(ends, "CalendarPicker", is_open=True)))


def _uploads(kind: str) -> tuple[Property, ...]:
    """Return the properties of a picker of photos or documents."""
    return (
        _NAME,
        _filled("label", 80),
        _filled("description", 300, required=False),
        _property("max-file-size-kb", NumberKind(1, MAX_FILE_KB, is_integer=True), dynamic=False),
        _property(f"min-uploaded-{kind}", NumberKind(0, MAX_FILES, is_integer=True), dynamic=False),
        _property(f"max-uploaded-{kind}", NumberKind(1, MAX_FILES, is_integer=True), dynamic=False),
        _ENABLED,
        _VISIBLE,
        _property("error-message", EitherKind((TextKind(filled=None), MapKind(TextKind(filled=ALWAYS))))),
    )


# Source: public page "Validator of Flow JSON", children: the components that a branch and a Form may have.
CASE: Final[Mapping[str, Version]] = dict.fromkeys(
    (
        "CheckboxGroup",
        "DatePicker",
        "DocumentPicker",
        "Dropdown",
        "EmbeddedLink",
        "Footer",
        "Image",
        "OptIn",
        "PhotoPicker",
        "RadioButtonsGroup",
        "TextArea",
        "TextBody",
        "TextCaption",
        "TextHeading",
        "TextInput",
        "TextSubheading",
    ),
    ALWAYS,
) | {"CalendarPicker": _V61, "ChipsSelector": _V71}
BRANCH: Final[Mapping[str, Version]] = {**CASE, "If": _V4, "Switch": _V4}
FORM: Final[Mapping[str, Version]] = {**BRANCH, "ChipsSelector": _V63, "NavigationList": _V62, "ImageCarousel": _V71}

_LIST_ITEM: Final = (
    _property("id", TextKind(), required=True),
    _property("enabled", BooleanKind(), dynamic=False),
    _property(
        "main-content",
        ObjectKind((_filled("title", 30), _text("description", 20), _text("metadata", 80)), "main-content"),
        required=True,
        dynamic=False,
    ),
    _property(
        "start",
        ObjectKind((_property("image", PictureKind(100), required=True), _text("alt-text")), "start"),
        dynamic=False,
    ),
    _property(
        "end", ObjectKind((_text("title", 10), _text("description", 10), _text("metadata", 10)), "end"), dynamic=False
    ),
    _text("badge", 15),
    _property("tags", ListKind(TextKind(15, filled=None), 1, 3, has_hard_maximum=True), dynamic=False),
    _property("on-click-action", _GO, dynamic=False),
)
_CAROUSEL_IMAGE: Final = (
    _property("src", PictureKind(is_checked=True), required=True),
    _property("alt-text", TextKind(), required=True),
)

# fmt: off
COMPONENTS: Final = {component.type: component for component in (
    Component("TextHeading", (_filled("text", 80), _VISIBLE)),
    Component("TextSubheading", (_filled("text", 80), _VISIBLE)),
    Component("TextBody", _formatted(4096)),
    Component("TextCaption", _formatted(409)),
    Component("RichText", (_property("text", _TEXTS, required=True), _VISIBLE), since=_V51),
    Component("Image", (
        _property("src", PictureKind(), required=True),
        _property("width", NumberKind()),
        _property("height", NumberKind()),
        _property("scale-type", _choice("cover", "contain"), dynamic=False),
        _property("aspect-ratio", NumberKind()),
        _text("alt-text"),
        _VISIBLE,
    ), max_per_screen=3),
    Component("ImageCarousel", (
        _property("images", ListKind(ObjectKind(_CAROUSEL_IMAGE, "images"), 1), required=True),
        _property("aspect-ratio", _choice("4:3", "16:9"), dynamic=False),
        _property("scale-type", _choice("contain", "cover"), dynamic=False),
        _VISIBLE,
    ), since=_V71, max_per_screen=2),
    Component("EmbeddedLink", (
        _filled("text", 25),
        _property("on-click-action", _LINK, required=True, dynamic=False),
        _VISIBLE,
    ), max_per_screen=2),
    Component("TextInput", (
        _NAME,
        _text("label", 20, required=True),
        _property("input-type", _choice("text", "number", "password", "passcode", "phone", "email"),
                  dynamic=False),
        _property("pattern", TextKind(format="regex"), since=_V62),
        _REQUIRED,
        _ENABLED,
        _property("min-chars", NumberKind()),
        _property("max-chars", NumberKind()),
        _text("helper-text", 80),
        _VISIBLE,
        _initial(TextKind()),
        _error(30),
        _VARIANT,
    ), is_input=True, value_type="string"),
    Component("TextArea", (
        _NAME,
        _text("label", 20, required=True),
        _REQUIRED,
        _property("max-length", NumberKind(is_integer=True)),
        _text("helper-text", 80),
        _ENABLED,
        _VISIBLE,
        _initial(TextKind()),
        _error(),
        _VARIANT,
    ), is_input=True, value_type="string"),
    Component("CheckboxGroup", (
        *_GROUP, *_selected(2), _options(1, 20, *_DESCRIBED), _initial(ListKind(TextKind())),
    ), is_input=True, value_type="array"),
    Component("RadioButtonsGroup", (
        *_GROUP, _options(1, 20, *_DESCRIBED), _initial(TextKind()),
    ), is_input=True, value_type="string"),
    Component("ChipsSelector", (
        _NAME,
        _text("label", 80, required=True),
        _options(1, 20),
        *_selected(1),
        _text("description", 300),
        _REQUIRED,
        _ENABLED,
        _VISIBLE,
        _property("on-select-action", _SELECT, since=_V71, dynamic=False),
        _property("on-unselect-action", _UPDATE, since=_V71, dynamic=False),
        _initial(ListKind(TextKind())),
        _error(),
    ), since=_V63, is_input=True, value_type="array"),
    Component("Dropdown", (
        _NAME,
        _text("label", 20, required=True),
        _options(1, 200, *_DESCRIBED),
        _REQUIRED,
        _ENABLED,
        _VISIBLE,
        *_SELECTIONS,
        _initial(TextKind()),
        _error(),
    ), is_input=True, value_type="string"),
    Component("OptIn", (
        _NAME,
        _text("label", 120, required=True),
        _REQUIRED,
        _VISIBLE,
        _property("on-click-action", _LINK, dynamic=False),
        _property("on-select-action", _UPDATE, since=_V6, dynamic=False),
        _property("on-unselect-action", _UPDATE, since=_V6, dynamic=False),
        _initial(BooleanKind()),
    ), is_input=True, value_type="boolean", max_per_screen=5),
    Component("DatePicker", (
        _NAME,
        _text("label", 40, required=True),
        *_DATES,
        _UNAVAILABLE,
        _text("helper-text", 80),
        _REQUIRED,
        _ENABLED,
        _VISIBLE,
        _property("on-select-action", _EXCHANGE, dynamic=False),
        _initial(DateKind()),
        _error(80),
    ), is_input=True, value_type="string"),
    Component("CalendarPicker", (
        _NAME,
        _property("mode", _choice("single", "range")),
        _text("title", 80),
        _text("description", 300),
        _property("label", _two(TextKind(40)), required=True),
        _property("helper-text", _two(TextKind(80))),
        _property("required", _two(BooleanKind())),
        _ENABLED,
        _VISIBLE,
        *_DATES,
        _UNAVAILABLE,
        _property("include-days", ListKind(_choice("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"), 1)),
        _property("min-days", NumberKind(is_integer=True)),
        _property("max-days", NumberKind(is_integer=True)),
        _property("on-select-action", _EXCHANGE, dynamic=False),
        _initial(_two(DateKind())),
        _property("error-message", _two(TextKind(80))),
    ), since=_V61, is_input=True, value_type="string"),
    Component("PhotoPicker", (
        *_uploads("photos"), _property("photo-source", _choice("camera", "gallery", "camera_gallery"), dynamic=False),
    ), since=_V4, is_input=True, value_type="array", max_per_screen=1),
    Component("DocumentPicker", (
        *_uploads("documents"), _property("allowed-mime-types", ListKind(EnumKind(DOCUMENT_TYPES), 1), dynamic=False),
    ), since=_V4, is_input=True, value_type="array", max_per_screen=1),
    Component("Footer", (
        _text("label", 35, required=True),
        _text("left-caption", 15),
        _text("center-caption", 15),
        _text("right-caption", 15),
        _ENABLED,
        _property("on-click-action", _FINISH, required=True, dynamic=False),
    ), max_per_screen=1),
    Component("NavigationList", (
        _NAME,
        _property("list-items", ListKind(ObjectKind(_LIST_ITEM, "list-items"), 1, 20), required=True),
        _text("label", 80),
        _text("description", 300),
        _property("media-size", _choice("regular", "large"), dynamic=False),
        _property("on-click-action", _GO, dynamic=False),
    ), since=_V62, max_per_screen=2),
    Component("Form", (
        _property("name", TextKind(min_chars=1), required=True),
        _property("children", ComponentsKind(FORM), required=True, dynamic=False),
        _property("init-values", MapKind(AnyKind(("string", "array", "boolean", "number", "object")))),
        _property("error-messages", MapKind(EitherKind((TextKind(), MapKind(TextKind()))))),
    ), max_per_screen=1),
    Component("If", (
        _property("condition", ConditionKind(), required=True, dynamic=False),
        _property("then", ComponentsKind(BRANCH), required=True, dynamic=False),
        _property("else", ComponentsKind(BRANCH), dynamic=False),
    ), since=_V4),
    Component("Switch", (
        _property("value", ReferenceKind(), required=True, dynamic=False),
        _property("cases", MapKind(ComponentsKind(CASE), _CASE_NAME), required=True, dynamic=False),
    ), since=_V4),
)}

_PAYLOAD: Final = _property("payload", AnyKind(("object",)), dynamic=False)
_NEXT: Final = ObjectKind((
    _property("type", EnumKind(("screen",)), required=True, dynamic=False),
    _property("name", TextKind(), required=True, dynamic=False),
), "next")
ACTIONS: Final = {
    "navigate": (_property("next", _NEXT, required=True, dynamic=False), _PAYLOAD),
    "complete": (_PAYLOAD,),
    "data_exchange": (_PAYLOAD,),
    "update_data": (_PAYLOAD,),
    "open_url": (_property("url", TextKind(format="uri"), required=True),),
}
ACTION_MEMBERS: Final = {"next": ALWAYS, "url": _V6, "payload": ALWAYS}
"""Members that only some actions have; the operator says so instead of calling them unknown."""
SCREEN: Final = (
    _property("id", TextKind(min_chars=1, patterns=SCREEN_ID), required=True, dynamic=False),
    _property("layout", ObjectKind((
        _property("type", EnumKind(("SingleColumnLayout",), is_constant=True), required=True, dynamic=False),
        _property("children", ComponentsKind(), required=True, dynamic=False),
    ), "layout"), required=_V6, dynamic=False),
    _property("title", TextKind(filled=_V5), required=_V51, dynamic=False),
    _property("terminal", BooleanKind(), dynamic=False),
    _property("success", BooleanKind(), dynamic=False),
    _property("refresh_on_back", BooleanKind(), dynamic=False),
    _property("data", AnyKind(("object",)), dynamic=False),
    _property("sensitive", ListKind(TextKind(filled=None), 1), since=_V51, dynamic=False),
)
FLOW: Final = (
    _property("version", AnyKind(), dynamic=False),
    _property("data_api_version", AnyKind(("string",)), dynamic=False),
    Property("data_channel_uri", TextKind(format="uri"), until=(3, 0)),
    _property("routing_model", MapKind(ListKind(TextKind(filled=None, patterns=SCREEN_ID)), SCREEN_ID), dynamic=False),
    _property("screens", ListKind(ObjectKind(SCREEN, "screen"), 1), required=True, dynamic=False),
)
# fmt: on
