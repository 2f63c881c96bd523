"""Each rule of Flow JSON, broken once or more: what is changed in the small Flow, and where the error stands."""

from dataclasses import dataclass
from typing import Any, Final

from tests.flow_json.samples import BODIES, DROP, OPTIONS, PICTURE, finish, footer, screen
from waypost.flow_json import errors
from waypost.flow_json.errors import FlowRule


@dataclass(frozen=True)
class BrokenRule:
    """A change, and the error that it causes.

    Attributes:
        rule: its name in `errors`.
        changes: new values by path; `DROP` takes one away.
        at: the path that the error's pointer names; empty: the first change.
    """

    rule: str
    changes: dict[str, Any]
    at: str = ""

    @property
    def expected(self) -> FlowRule:
        """The rule."""
        rule: FlowRule = getattr(errors, self.rule)
        return rule

    @property
    def path(self) -> str:
        """The path of the error."""
        return self.at or next(iter(self.changes))


_C: Final = "screens/0/layout/children"
_ONE: Final = f"{_C}/0"
_INPUT: Final = f"{_C}/2"
_ACTION: Final = f"{_C}/3/on-click-action"
_PAYLOAD: Final = f"{_ACTION}/payload/who"
_END: Final = "screens/1/layout/children"
_DATA: Final = "screens/0/data"
_TEXT: Final = {"type": "TextBody", "text": "Text"}
_VERSION: Final = "version"
_ENDPOINT: Final = {"data_api_version": "3.0", "routing_model": {"START": ["END"], "END": []}}
_UPDATE: Final = {"name": "update_data", "payload": {"hint": "New"}}


def one(name: str, **members: Any) -> dict[str, Any]:
    """Return a component of a type with changed members; those that are `DROP` are left out."""
    merged = {"type": name, **BODIES[name], **{key.replace("_", "-"): value for key, value in members.items()}}
    return {key: value for key, value in merged.items() if value is not DROP}


def put(name: str, **members: Any) -> dict[str, Any]:
    """Return the change that puts a component in the first place."""
    return {_ONE: one(name, **members)}


def condition(text: Any, **members: Any) -> dict[str, Any]:
    """Return the change that puts an If in the first place."""
    return {_ONE: {"type": "If", "condition": text, "then": [_TEXT], **members}}


def nested_ifs(depth: int) -> dict[str, Any]:
    """Return Ifs within one another."""
    inner = nested_ifs(depth - 1) if depth > 1 else _TEXT
    return {"type": "If", "condition": "${data.shown}", "then": [inner]}


def pickers(*parts: dict[str, Any], version: str = "7.3") -> dict[str, Any]:
    """Return the changes that put pickers on the last screen, and give their files to it."""
    changes: dict[str, Any] = {_VERSION: version}
    for index, part in enumerate(parts):
        changes[f"screens/1/layout/children/{2 + index}"] = part
        changes[f"{_END}/1/on-click-action/payload/{part['name']}"] = f"${{form.{part['name']}}}"
    return changes


_SWITCH: Final = {"type": "Switch", "value": "${data.hint}", "cases": {"one": [_TEXT]}}
_MIDDLE: Final = [screen(f"S_{letter}", footer("END", {"who": "x"})) for letter in "ABCDEFGHIJK"]
_MANY: Final = {f"screens/{2 + index}": middle for index, middle in enumerate(_MIDDLE)}
_LINKS: Final = {
    f"{_C}/{4 + index}": {
        "type": "OptIn",
        "name": f"agreed_{letter}",
        "label": "Agreed",
        "on-click-action": {"name": "navigate", "next": {"type": "screen", "name": f"S_{letter}"}, "payload": {}},
    }
    for index, letter in enumerate("ABCDEFGHIJK")
}
_LIST: Final = {"type": "NavigationList", **BODIES["NavigationList"]}
_ITEM: Final = f"{_ONE}/list-items/0"
_DAYS: Final = f"{_ONE}/init-value"
_FORM: Final = {"type": "Form", "name": "form", "children": [{"type": "TextInput", "name": "who", "label": "Name"}]}

# fmt: off
CASES: Final = (
    BrokenRule("NO_VERSION", {_VERSION: DROP}, " "),
    BrokenRule("INVALID_VERSION", {_VERSION: "99.9"}),
    BrokenRule("INVALID_VERSION", {_VERSION: 7.3}),
    BrokenRule("UNKNOWN_PROPERTY", {"colour": "red"}),
    BrokenRule("UNKNOWN_PROPERTY", {"screens/0/colour": "red"}),
    BrokenRule("UNKNOWN_PROPERTY", {f"{_ACTION}/next/colour": "red"}),
    BrokenRule("UNKNOWN_COMPONENT_PROPERTY", {f"{_INPUT}/placeholder": "Name"}),
    BrokenRule("UNKNOWN_COMPONENT_PROPERTY", {f"{_INPUT}/label-variant": "large", _VERSION: "6.3"}),
    BrokenRule("OLDER_PROPERTY", {"data_channel_uri": "https://example.com"}),
    BrokenRule("LIST_ON_TERMINAL", {_C: [_LIST], "screens/0/terminal": True}, "screens/0"),
    BrokenRule("INVALID_COMPONENT", {f"{_ONE}/type": "Video"}),
    BrokenRule("INVALID_COMPONENT", {_VERSION: "6.1", **put("NavigationList")}, f"{_ONE}/type"),
    BrokenRule("INVALID_COMPONENT", {_ONE: {**_SWITCH, "cases": {"one": [nested_ifs(1)]}}}, f"{_ONE}/cases/one/0/type"),
    BrokenRule("INVALID_CONSTANT", {"screens/0/layout/type": "TwoColumnLayout"}),
    BrokenRule("INVALID_CONSTANT", {**_ENDPOINT, "data_api_version": "9.0"}),
    BrokenRule("INVALID_CONSTANT", {_ONE: one("DatePicker", on_select_action=_UPDATE)}, f"{_ONE}/on-select-action/name"),
    BrokenRule("INVALID_TYPE", {f"{_ONE}/text": 5}),
    BrokenRule("INVALID_TYPE", {f"{_INPUT}/required": 1}),
    BrokenRule("INVALID_TYPE", {"screens": {}}),
    BrokenRule("INVALID_TYPE", {"screens/0": "START"}),
    BrokenRule("INVALID_TYPE", {f"{_C}/0": None}),
    BrokenRule("INVALID_TYPE", {f"{_INPUT}/min-chars": "many"}),
    BrokenRule("NOT_DYNAMIC_FORM", {f"{_INPUT}/required": "yes"}),
    BrokenRule("NOT_A_REFERENCE", {_ONE: {**_SWITCH, "value": "one"}}, f"{_ONE}/value"),
    BrokenRule("DYNAMIC_NAME", {f"{_INPUT}/name": "${data.hint}"}),
    BrokenRule("NESTED_NAME", {f"{_INPUT}/name": "`who`"}),
    BrokenRule("BLANK", {f"{_ONE}/text": "  "}),
    BrokenRule("BLANK", {f"{_INPUT}/label": ""}),
    BrokenRule("BLANK", {f"{_INPUT}/name": ""}),
    BrokenRule("PATTERN", {"screens/0/id": "START-1"}),
    BrokenRule("PATTERN", {"routing_model": {"START": ["E2"]}}, "routing_model/START/0"),
    BrokenRule("PATTERN", put("Dropdown", data_source=[{**OPTIONS[0], "color": "red"}]), f"{_ONE}/data-source/0/color"),
    BrokenRule("NAME_PATTERN", {"routing_model": {"S1": []}}, "routing_model/S1"),
    BrokenRule("NAME_PATTERN", {_ONE: {**_SWITCH, "cases": {"1st": [_TEXT]}}}, f"{_ONE}/cases/1st"),
    BrokenRule("INVALID_FORMAT", {f"{_INPUT}/pattern": "(["}),
    BrokenRule("INVALID_FORMAT", put("EmbeddedLink", on_click_action={"name": "open_url", "url": "page"}), f"{_ONE}/on-click-action/url"),
    BrokenRule("TOO_FEW_ITEMS", {"screens": []}),
    BrokenRule("TOO_FEW_ITEMS", put("Dropdown", data_source=[]), f"{_ONE}/data-source"),
    BrokenRule("TOO_MANY_TAGS", {_C: [_LIST], f"{_ITEM}/tags": list("abcd")}, f"{_ITEM}/tags"),
    BrokenRule("TOO_FEW_CHARS", {f"{_INPUT}/label": "", _VERSION: "5.1"}),
    BrokenRule("MISSING_PROPERTY", {f"{_INPUT}/label": DROP}, _INPUT),
    BrokenRule("MISSING_PROPERTY", {f"{_ONE}/type": DROP}, _ONE),
    BrokenRule("MISSING_PROPERTY", {"screens": DROP}, " "),
    BrokenRule("MISSING_PROPERTY", {"screens/0/layout": DROP}, "screens/0"),
    BrokenRule("MISSING_PROPERTY", {f"{_ACTION}/next": DROP}, _ACTION),
    BrokenRule("MISSING_PROPERTY", {f"{_ACTION}/name": DROP}, _ACTION),
    BrokenRule("MISSING_PROPERTY", {f"{_DATA}/hint/__example__": DROP}, f"{_DATA}/hint"),
    BrokenRule("MISSING_PROPERTY", put("DatePicker", on_select_action={"name": "data_exchange"}), f"{_ONE}/on-select-action"),
    BrokenRule("INVALID_CHOICE", {f"{_ACTION}/name": "fly"}),
    BrokenRule("INVALID_CHOICE", {f"{_INPUT}/input-type": "colour"}),
    BrokenRule("INVALID_CHOICE", {f"{_INPUT}/pattern": "a+", f"{_INPUT}/helper-text": "As", f"{_INPUT}/input-type": "email"}, f"{_INPUT}/input-type"),
    BrokenRule("BELOW_MINIMUM", put("PhotoPicker", max_uploaded_photos=0), f"{_ONE}/max-uploaded-photos"),
    BrokenRule("ABOVE_MAXIMUM", put("PhotoPicker", max_uploaded_photos=31), f"{_ONE}/max-uploaded-photos"),
    BrokenRule("CAPTION_PAIR", {f"{_C}/3/left-caption": "a"}, f"{_C}/3"),
    BrokenRule("EXCLUSIVE", {f"{_C}/3/left-caption": "a", f"{_C}/3/right-caption": "a", f"{_C}/3/center-caption": "b"}, f"{_C}/3"),
    BrokenRule("NOT_IN_ACTION", {f"{_END}/1/on-click-action/next": {"type": "screen", "name": "START"}}),
    BrokenRule("SUCCESS_NOT_TERMINAL", {"screens/0/success": True}),
    BrokenRule("OUTSIDE_FORM_BEFORE_4", {_VERSION: "3.1"}, _INPUT),

    BrokenRule("TOO_MANY_ITEMS", put("RadioButtonsGroup", data_source=[{"id": str(n), "title": "x"} for n in range(21)]), f"{_ONE}/data-source"),
    BrokenRule("TOO_LONG", {f"{_ONE}/text": "x" * 81}),
    BrokenRule("LARGE_PICTURE", put("Dropdown", data_source=[{**OPTIONS[0], "image": PICTURE.rstrip("=") + "A" * 420_000}]), f"{_ONE}/data-source/0/image"),
    BrokenRule("NO_PICTURE", put("Image", src="x"), f"{_ONE}/src"),
    BrokenRule("PLAIN_MIXED", {f"{_ONE}/text": "Dear ${data.hint},"}),
    BrokenRule("MANY_ON_SCREEN", {_C: [_TEXT] * 51 + [footer("END", {"who": "x"})]}, f"{_C}/50"),
    BrokenRule("NO_WAY_TO_END", {f"{_ACTION}": {"name": "data_exchange"}, **_ENDPOINT, "routing_model": {"END": ["START"], "START": []}, "screens/1/terminal": DROP, "screens/2": screen("LAST", finish(), terminal=True), "screens/3": screen("OTHER", footer("LAST"))}, "screens/1/id"),
    BrokenRule("CYCLE", {"screens/2": screen("THIRD", footer("END", {"who": "x"})), "screens/1/layout/children/2": one("OptIn", on_click_action={"name": "navigate", "next": {"type": "screen", "name": "THIRD"}})}, "screens/1/id"),

    BrokenRule("MISSING_SCREENS", {**_ENDPOINT, "routing_model": {"END": []}}, "screens/0/id"),
    BrokenRule("INVALID_SCREENS", {"routing_model": {"START": ["END", "MOON"]}}, "routing_model/START/1"),
    BrokenRule("INVALID_SCREENS", {"routing_model": {"START": ["END"], "MOON": []}}, "routing_model/MOON"),
    BrokenRule("SCREEN_ALONE", {"screens/2": screen("ALONE", finish(), terminal=True)}, "screens/2/id"),
    BrokenRule("SCREEN_ALONE", {"routing_model": {"START": [], "END": []}}, "screens/1/id"),
    BrokenRule("NO_ENTRY", {"screens/1/layout/children/2": one("OptIn", on_click_action={"name": "navigate", "next": {"type": "screen", "name": "START"}})}, "screens"),
    BrokenRule("NO_ENTRY", {"routing_model": {"START": ["END"], "END": ["START"]}}),
    BrokenRule("LOOP", {"routing_model": {"START": ["START", "END"]}}, "routing_model/START"),
    BrokenRule("TOO_MANY_BRANCHES", {**_MANY, "routing_model": {"START": [middle["id"] for middle in _MIDDLE], **{middle["id"]: ["END"] for middle in _MIDDLE}}}, "routing_model/START"),
    BrokenRule("TOO_MANY_BRANCHES", {**_MANY, **_LINKS}, "screens/0"),
    BrokenRule("BACKWARD_ROUTE", {"routing_model": {"START": ["END"], "END": ["START"]}}, "routing_model/END/0"),
    BrokenRule("MISSING_ROUTE", {"routing_model": {"START": ["THIRD"], "THIRD": ["END"]}, "screens/2": screen("THIRD", footer("END", {"who": "x"}))}, "screens/0/id"),

    BrokenRule("MISSING_FORM_FIELD", {_PAYLOAD: "${form.nobody}"}),
    BrokenRule("MISSING_PAYLOAD_DATA", {_PAYLOAD: "${data.nothing}"}),
    BrokenRule("MISSING_PAYLOAD_DATA", {_PAYLOAD: "${data.hint} ${data.hint}"}),
    BrokenRule("MISSING_PAYLOAD_SCREEN", {_PAYLOAD: "${screen.MOON.form.who}"}),
    BrokenRule("FORM_AS_VALUE", {_INPUT: _FORM, _PAYLOAD: "${form.form}"}, _PAYLOAD),
    BrokenRule("PICKER_IN_NAVIGATE", {_ONE: one("PhotoPicker"), _PAYLOAD: "${form.photos}"}, _PAYLOAD),
    BrokenRule("PICKER_TOP_LEVEL", {f"{_END}/2": one("PhotoPicker"), f"{_END}/1/on-click-action/payload/all": ["${form.photos}"]}, f"{_END}/1/on-click-action/payload/all/0"),
    BrokenRule("TOO_MANY_FILES", pickers(one("DocumentPicker")), f"{_END}/1/on-click-action/payload"),
    BrokenRule("TOO_LARGE_FILES", pickers(one("PhotoPicker", max_uploaded_photos=5)), f"{_END}/1/on-click-action/payload"),
    BrokenRule("ONE_PICKER", pickers(one("PhotoPicker"), one("DocumentPicker"), version="4.0"), f"{_END}/1/on-click-action/payload"),
    BrokenRule("FOOTER_OUTSIDE_FORM", {_VERSION: "3.1", _INPUT: _FORM}, _PAYLOAD),
    BrokenRule("PAYLOAD_EXPRESSION", {_PAYLOAD: "`${data.nothing}`"}),
    BrokenRule("PAYLOAD_EXPRESSION", {_PAYLOAD: "`${data.hint} - 1`"}),
    BrokenRule("COMPLETE_NOT_TERMINAL", {"screens/1/terminal": DROP}, f"{_END}/1/on-click-action/name"),
    BrokenRule("NO_PAYLOAD", {f"{_ACTION}/payload": DROP}, _ACTION),
    BrokenRule("NO_DATA_MODEL", {"screens/1/data": DROP}, f"{_ACTION}/payload"),
    BrokenRule("NOT_IN_DATA_MODEL", {f"{_ACTION}/payload/more": "${form.who}"}),
    BrokenRule("NOT_IN_PAYLOAD", {_PAYLOAD: DROP}, f"{_ACTION}/payload"),
    BrokenRule("PAYLOAD_REFERENCE", {"screens/1/data/who": {"type": "number", "__example__": 1}}, _PAYLOAD),
    BrokenRule("PAYLOAD_REFERENCE", {f"{_INPUT}/input-type": "number"}, _PAYLOAD),
    BrokenRule("PAYLOAD_VALUE", {_PAYLOAD: 5}),
    BrokenRule("PAYLOAD_VALUE", {_PAYLOAD: True}),
    BrokenRule("NOT_DECLARED", {f"{_ACTION}/payload/more": "x"}),
    BrokenRule("UPDATE_NO_MODEL", {f"{_END}/2": one("Dropdown", on_select_action=_UPDATE), "screens/1/data": DROP}, f"{_END}/2/on-select-action/payload"),
    BrokenRule("UPDATE_UNKNOWN", put("Dropdown", on_select_action={"name": "update_data", "payload": {"moon": 1}}), f"{_ONE}/on-select-action/payload/moon"),
    BrokenRule("UPDATE_REFERENCE", put("Dropdown", on_select_action={"name": "update_data", "payload": {"hint": "${data.count}"}}), f"{_ONE}/on-select-action/payload/hint"),
    BrokenRule("UPDATE_VALUE", put("Dropdown", on_select_action={"name": "update_data", "payload": {"hint": 5}}), f"{_ONE}/on-select-action/payload/hint"),
    BrokenRule("UPDATE_SELF", put("Dropdown", on_select_action={"name": "update_data", "payload": {"hint": "${data.hint}"}}), f"{_ONE}/on-select-action/payload/hint"),
    BrokenRule("SELECT_TWICE", put("Dropdown", on_select_action=_UPDATE, data_source=[{**OPTIONS[0], "on-select-action": _UPDATE}]), f"{_ONE}/data-source/0/on-select-action"),
    BrokenRule("SAME_SCREEN", {f"{_ACTION}/next/name": "START"}),
    BrokenRule("UNKNOWN_SCREEN", {f"{_ACTION}/next/name": "MOON"}),
    BrokenRule("ACTION_NEEDS_DATA_API", {f"{_ACTION}": {"name": "data_exchange"}}, f"{_ACTION}/name"),
    BrokenRule("DATA_API_NEEDS_ROUTES", {"data_api_version": "3.0"}, " "),
    BrokenRule("REFRESH_NEEDS_DATA_API", {"screens/0/refresh_on_back": True}),

    BrokenRule("MISSING_DATA", {f"{_ONE}/text": "${data.nothing}"}),
    BrokenRule("MISSING_DATA", {f"{_ONE}/text": "${data.hint} and ${data.hint}"}),
    BrokenRule("MISSING_FIELD", {f"{_ONE}/text": "${form.nobody}"}),
    BrokenRule("FORM_AS_DATA", {_INPUT: _FORM, f"{_ONE}/text": "${form.form}"}, f"{_ONE}/text"),
    BrokenRule("DATA_NAME", {f"{_DATA}/a-b": {"type": "string", "__example__": "x"}, f"{_ONE}/text": "${data.a-b}"}, f"{_ONE}/text"),
    BrokenRule("NO_MEMBER", {f"{_ONE}/text": "${data.person.age}"}),
    BrokenRule("INDEX_IN_LIST", {f"{_ONE}/text": "${data.names.first}"}),
    BrokenRule("DATA_TYPE", {f"{_ONE}/text": "${data.count}"}),
    BrokenRule("DATA_TYPE", {f"{_INPUT}/required": "${data.hint}"}),
    BrokenRule("DATA_TYPES", {f"{_C}/1/text": "${data.count}"}),
    BrokenRule("FIELD_TYPE", {f"{_ONE}/visible": "${form.who}"}),
    BrokenRule("MISSING_SCHEMA", {f"{_DATA}/options": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}, "__example__": []}, **put("Dropdown", data_source="${data.options}")}, f"{_ONE}/data-source"),
    BrokenRule("GLOBAL_OWN_SCREEN", {f"{_ONE}/text": "${screen.START.data.hint}"}),
    BrokenRule("GLOBAL_NO_SCREEN", {f"{_ONE}/text": "${screen.MOON.data.hint}"}),
    BrokenRule("GLOBAL_BEFORE_4", {_VERSION: "3.1", _INPUT: {**_FORM, "children": [*_FORM["children"], footer("END", {"who": "x"})]}, f"{_C}/3": DROP, f"{_ONE}/text": "${screen.END.data.who}"}, f"{_ONE}/text"),
    BrokenRule("LIST_ITEM_DYNAMIC", {f"{_C}/1/text": ["One", "${data.hint}"]}, f"{_C}/1/type"),
    BrokenRule("MIXED_RICH_TEXT", {_C: [one("RichText", text="Dear ${data.hint},"), footer("END", {"who": "x"})]}, f"{_ONE}/text"),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/text": "`${data.nothing}`"}),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/visible": "`${data.count} + 1`"}),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/visible": "`${data.count} == 'x'`"}),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/visible": "`!${data.count}`"}),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/visible": "`${data.count} && ${data.shown}`"}),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/visible": "`${data.shown} == null`"}),
    BrokenRule("INVALID_NESTED", {f"{_ONE}/visible": "`(${data.shown}`"}),

    BrokenRule("EXAMPLE_NOT_TOP", {f"{_DATA}/person/properties/name/__example__": "Ann"}),
    BrokenRule("NO_TYPE", {f"{_DATA}/names/items/type": DROP}, f"{_DATA}/names/items"),
    BrokenRule("TYPE_NOT_TEXT", {f"{_DATA}/hint/type": 5}),
    BrokenRule("INVALID_CHOICE", {f"{_DATA}/hint/type": "text"}),
    BrokenRule("NO_ITEMS", {f"{_DATA}/names/items": DROP}, f"{_DATA}/names"),
    BrokenRule("ITEMS_TYPE", {f"{_DATA}/names/items": "string"}),
    BrokenRule("EXAMPLE_TYPE", {f"{_DATA}/hint/__example__": 5}),
    BrokenRule("EXAMPLE_TYPE", {f"{_DATA}/names/__example__": [5]}),
    BrokenRule("EXAMPLE_LACKS", {f"{_DATA}/person/required": ["age"]}, f"{_DATA}/person/__example__"),

    BrokenRule("TOO_MANY_SCREENS", {"screens": [screen("A" * (n + 1), finish(), terminal=True) for n in range(101)]}, "screens/100"),
    BrokenRule("TOO_MANY_ON_SCREEN", {_C: [_TEXT] * 100 + [footer("END", {"who": "x"})]}, f"{_C}/100/type"),
    BrokenRule("TOO_MANY_OF_TYPE", {f"{_C}/4": footer("END", {"who": "x"})}, f"{_C}/4/type"),
    BrokenRule("TOO_MANY_OF_TYPE", {_ONE: {"type": "If", "condition": "${data.shown}", "then": [footer("END", {"who": "x"})], "else": [footer("END", {"who": "x"})]}}, f"{_ONE}/else/0/type"),
    BrokenRule("BOTH_PICKERS", {_ONE: one("PhotoPicker"), f"{_C}/1": one("DocumentPicker")}, f"{_C}/1/type"),
    BrokenRule("TOO_MANY_IN_FLOW", {_ONE: one("ImageCarousel"), f"{_C}/1": one("ImageCarousel"), f"{_END}/0": one("ImageCarousel"), f"{_END}/2": one("ImageCarousel")}, f"{_END}/2"),
    BrokenRule("TOO_MANY_PICTURES", put("ImageCarousel", images=[{"src": PICTURE, "alt-text": "x"}] * 4), f"{_ONE}/images"),
    BrokenRule("INVALID_PICTURE", put("ImageCarousel", images=[{"src": "data:image/png;base64,AAAA", "alt-text": "x"}]), f"{_ONE}/images/0/src"),
    BrokenRule("DUPLICATE_NAME", {f"{_C}/4": {"type": "TextArea", "name": "who", "label": "Again"}}, f"{_C}/4/name"),
    BrokenRule("DUPLICATE_SCREEN", {"screens/1/id": "START"}),
    BrokenRule("RESERVED_SCREEN", {"screens/1/id": "SUCCESS"}),
    BrokenRule("NO_TERMINAL", {"screens/1/terminal": False}, "screens"),
    BrokenRule("NO_SUCCESS", {"screens/1/success": False}),
    BrokenRule("NO_FOOTER", {f"{_END}/1": DROP}, "screens/1"),
    BrokenRule("TERMINAL_ACTION", {"screens/0/terminal": True}, f"{_ACTION}/name"),
    BrokenRule("OUTSIDE_FORM", {f"{_C}/4": {"type": "Form", "name": "form", "children": []}}, _INPUT),
    BrokenRule("NO_ELSE_FOOTER", {_ONE: {"type": "If", "condition": "${data.shown}", "then": [footer("END", {"who": "x"})]}, f"{_C}/3": DROP}, f"{_ONE}/then"),
    BrokenRule("ONE_BRANCH_FOOTER", {_ONE: {"type": "If", "condition": "${data.shown}", "then": [footer("END", {"who": "x"})], "else": [_TEXT]}, f"{_C}/3": DROP}, f"{_ONE}/else"),
    BrokenRule("NESTED_FOOTER", {_ONE: {"type": "If", "condition": "${data.shown}", "then": [{"type": "If", "condition": "${data.shown}", "then": [footer("END", {"who": "x"})]}]}, f"{_C}/3": DROP}, f"{_ONE}/then/0/then/0"),
    BrokenRule("ONE_CASE_FOOTER", {_ONE: {**_SWITCH, "cases": {"one": [footer("END", {"who": "x"})], "two": [_TEXT]}}, f"{_C}/3": DROP}, f"{_ONE}/cases"),
    BrokenRule("EMPTY_THEN", condition("${data.shown}", then=[]), f"{_ONE}/then"),
    BrokenRule("EMPTY_CASES", {_ONE: {**_SWITCH, "cases": {}}}, f"{_ONE}/cases"),
    BrokenRule("TOO_DEEP_IF", {_ONE: nested_ifs(4)}),
    *(BrokenRule("INVALID_CONDITION", condition(text), f"{_ONE}/condition") for text in (
        " ", "( )", "573 == 376", "))${data.shown}((", "(${data.shown}", "${data.hint} == 'x", "${data.shown} ${data.shown}", "${data.shown} = true",
        "shown", "${data.shown} && # ", "${data.hint} > 5", "${data.hint} == 5", "${data.shown} &&", "-a", "${data.names} == 'x'", "${data.count} + 1 > 2",
    )),
    BrokenRule("CONDITION_TYPE", condition("${data.hint}"), f"{_ONE}/condition"),
    BrokenRule("CONDITION_LITERAL", condition("true"), f"{_ONE}/condition"),
    BrokenRule("CONDITION_DATA", condition("${data.nothing}"), f"{_ONE}/condition"),
    BrokenRule("CONDITION_DATA", condition("${data.person.name} == 'Ann'"), f"{_ONE}/condition"),
    BrokenRule("PICKER_INITIAL", {_INPUT: {**_FORM, "children": [one("PhotoPicker")], "init-values": {"photos": []}}, _PAYLOAD: "x"}, f"{_INPUT}/init-values/photos"),
    BrokenRule("INITIAL_UNUSED", {_INPUT: {**_FORM, "init-values": {"nobody": "x"}}}, f"{_INPUT}/init-values/nobody"),
    BrokenRule("INITIAL_TYPE", {_INPUT: {**_FORM, "init-values": {"who": 5}}}, f"{_INPUT}/init-values/who"),
    BrokenRule("MINIMUM_ABOVE_MAXIMUM", {f"{_INPUT}/min-chars": 9, f"{_INPUT}/max-chars": 3}),
    BrokenRule("DAYS_ORDER", put("CalendarPicker", min_days=10), f"{_ONE}/min-days"),
    BrokenRule("DATE_ORDER", put("DatePicker", min_date="2026-02-01", max_date="2026-01-01"), f"{_ONE}/min-date"),
    BrokenRule("DATE_ORDER", put("CalendarPicker", init_value={"start-date": "2026-02-01", "end-date": "2026-01-01"}), _DAYS),
    BrokenRule("DATE_FORMAT", put("DatePicker", min_date="1.2.2026"), f"{_ONE}/min-date"),
    BrokenRule("DATE_FORMAT", put("DatePicker", init_value="tomorrow"), _DAYS),
    BrokenRule("INITIAL_DATE_FORMAT", put("CalendarPicker", init_value={"start-date": "soon"}), f"{_DAYS}/start-date"),
    BrokenRule("DATE_OUTSIDE", put("DatePicker", min_date="2026-02-01", unavailable_dates=["2026-01-01"]), f"{_ONE}/unavailable-dates/0"),
    BrokenRule("RANGE_ONLY", put("CalendarPicker", mode="single", label="Day", init_value=DROP, title=DROP, max_days=DROP), f"{_ONE}/min-days"),
    BrokenRule("MODE_TYPE", put("CalendarPicker", label="Days"), f"{_ONE}/label"),
    BrokenRule("NO_RANGE_END", put("CalendarPicker", label={"start-date": "From"}), f"{_ONE}/label"),
    BrokenRule("RANGE_MEMBER", put("CalendarPicker", label={"start-date": "a", "end-date": "b", "middle": "c"}), f"{_ONE}/label/middle"),
    BrokenRule("RICH_TEXT_ALONE", {_VERSION: "5.1", **put("RichText")}, f"{_ONE}/type"),
    BrokenRule("NOT_ALONE", {_VERSION: "6.0", **put("RichText")}, f"{_ONE}/type"),
    BrokenRule("NOT_ALONE", put("NavigationList"), f"{_ONE}/type"),
    BrokenRule("NOT_ALONE_WITH_FOOTER", put("RichText"), f"{_ONE}/type"),
    BrokenRule("LIST_ACTION", {_C: [_LIST], f"{_ITEM}/on-click-action": DROP}, _ONE),
    BrokenRule("LIST_ACTIONS", {_C: [{**_LIST, "on-click-action": BODIES["EmbeddedLink"]["on-click-action"]}]}, f"{_ONE}/on-click-action"),
    BrokenRule("LIST_END", {_C: [_LIST], f"{_ITEM}/end": {}}, f"{_ITEM}/end"),
    BrokenRule("ONE_BADGE", {_C: [_LIST], f"{_ONE}/list-items": [{**BODIES["NavigationList"]["list-items"][0], "badge": "New"}] * 2}, _ONE),
    BrokenRule("END_WITH_LARGE", {_C: [{**_LIST, "media-size": "large"}]}, _ONE),
    BrokenRule("PATTERN_HELP", {f"{_INPUT}/pattern": "a+"}, _INPUT),
    BrokenRule("IMAGE_AND_COLOR", put("Dropdown", data_source=[{**OPTIONS[0], "image": PICTURE}, {**OPTIONS[1], "color": "#00FF00"}]), f"{_ONE}/data-source/1/color"),
    BrokenRule("UNKNOWN_SENSITIVE", {"screens/0/sensitive": ["nobody"]}, "screens/0/sensitive/0"),
)
# fmt: on
