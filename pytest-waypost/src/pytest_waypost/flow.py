"""A Flow on a simulated phone: what its owner sees of it and does with it, also by a scenario as data.

Steps have the form of the control API, or that of flowso. Source: flowso, skills/flowso/references/scenarios.md.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, cast

from pytest_waypost.client import ApiResponseError, BlockingApiClient, is_api_error, object_of, objects_in
from pytest_waypost.failures import NotSeen

__tracebackhide__ = is_api_error

_NOT_ALLOWED: Final = 409
_TEXTS: Final = ("label", "text", "description", "helper_text", "error")
_OWN_STEPS: Final = ("fill", "choose", "upload", "remove", "tap", "back", "refresh", "close")
_EXPECTED: Final = (
    "status", "screen", "title", "history", "data", "fields", "fieldErrors", "errorMessage", "canSubmit", "completion",
)  # fmt: skip
_NO_ERRORS: Final[dict[str, Any]] = {"fieldErrors": {}, "errorMessage": None}
_STATUSES: Final = {"screen": "ready"}
"""Of the control API, and what flowso calls it."""


class PlayedFlow:
    """A Flow that a phone has opened. `Phone.flow` opens it.

    A step returns the Flow, so that steps can follow each other. One that the phone does not allow, such as a tap on the
    button of a screen whose fields are not valid, raises `ApiResponseError`, whose text names field and rule.

    Attributes:
        raw: the last response of the control API: what the phone shows, and what the last step caused.
        exchanges: with the endpoint so far, decrypted: `request`, `response`, `status`, `error_type`, `diagnosis`.
        response: what the Flow has sent to the partner; None until it is completed.
    """

    def __init__(self, control: BlockingApiClient, number: str, opened: Mapping[str, Any]) -> None:
        self._control = control
        self._path = f"/phones/{number}/flow"
        self._session_id = str(opened["session_id"])
        self.raw: Mapping[str, Any] = {}
        self.exchanges: list[Mapping[str, Any]] = []
        self.response: Mapping[str, Any] | None = None
        self._follow(opened)

    @property
    def screen(self) -> str:
        """Id of the screen; empty if none is shown."""
        return str(self._view.get("screen_id") or "")

    @property
    def status(self) -> str:
        """`screen`, or in place of one `busy`, `error`, `closed`, `completed` or `token_invalid`."""
        return str(self._view.get("state") or "")

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts of the screen, from its title on."""
        return tuple(filter(None, self._list_texts()))

    @property
    def errors(self) -> Mapping[str, str]:
        """The texts beside the fields that are not valid, by name."""
        return {one["name"]: one["error"] for one in self._components if one.get("error") and one.get("name")}

    def fill(self, values: Mapping[str, Any] | None = None, /, **further: Any) -> Self:
        """Enter values of fields, by their names: a text, a flag, the id of an option, or a list of such."""
        return self._step({"fill": {**(values or {}), **further}})

    def upload(self, picker: str, content: bytes, mime_type: str, *, file_name: str = "") -> Self:
        """Add a file to a picker, by the picker's name."""
        file = {"name": picker, "content": base64.b64encode(content).decode(), "mime_type": mime_type}
        return self._step({"upload": {**file, "file_name": file_name}})

    def tap(self, target: str) -> Self:
        """Tap a button, link, item or option by its text, or by its path if several have it."""
        return self._step({"tap": target})

    def back(self) -> Self:
        """Go back to the screen before."""
        return self._step({"back": True})

    def refresh(self) -> Self:
        """Refresh the screen, as its menu does: the endpoint is asked again."""
        return self._step({"refresh": True})

    def close(self) -> Self:
        """Close the Flow; `Phone.flow` opens it where it was left."""
        return self._step({"close": True})

    def submit(self, values: Mapping[str, Any] | None = None, /, **further: Any) -> Self:
        """Enter values, and tap the button at the foot of the screen."""
        __tracebackhide__ = True
        if values or further:
            self.fill(values, **further)
        footer = str(self._view.get("footer") or "")
        if not footer:
            raise NotSeen(f"the screen has no button at its foot\n{self}")
        return self.tap(footer)

    def expect_screen(self, screen: str, *texts: str) -> Self:
        """Check which screen is shown, and that it has these texts, each a part of one.

        Raises:
            NotSeen: another one is shown, or a text is absent; the text has what is shown.
        """
        __tracebackhide__ = True
        if self.status != "screen" or self.screen != screen:
            raise NotSeen(f"the Flow does not show the screen {screen}\n{self}")
        absent = [text for text in texts if not any(text in shown for shown in self.texts)]
        if absent:
            raise NotSeen(f"the screen {screen} does not have: {', '.join(absent)}\n{self}")
        return self

    def expect_response(self, **members: Any) -> Self:
        """Check that the Flow is completed, and that its response has these members.

        Raises:
            NotSeen: it is not, or they differ; the text has what there is.
        """
        __tracebackhide__ = True
        if self.response is None:
            raise NotSeen(f"the Flow is not completed\n{self}")
        if difference := find_difference(self.response, members):
            raise NotSeen(f"the response differs: {difference}\n  {dict(self.response)}")
        return self

    def play(self, scenario: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Self:
        """Carry out the steps of a scenario, which may come from a JSON file.

        A step is one of the control API (`fill` with an object, `choose`, `upload`, `tap`, `back`, …) or of flowso
        (`fill` with a name beside `value` or `valueFrom`, `submit`, `click` with or without `item`, `back`); either may
        have `expect`, which is compared with the screen after it: `status`, `screen`, `title`, `history`, `data`,
        `fields`, `fieldErrors`, `errorMessage`, `canSubmit`, `completion`. Errors of fields are compared
        by name, for each player has its own texts; those that are not expected fail, and so does a message of the
        endpoint. `canSubmit` is True when every required field has a value, as flowso has it, whether or not the button
        is enabled. How a Flow opens is a matter of its message, so `start` of a test counts for nothing.

        Args:
            scenario: the steps, or one test of a flowso suite, which has them as `steps`.

        Raises:
            NotSeen: something else is shown; the text names the step.
            ValueError: a step is none.
        """
        __tracebackhide__ = True
        for index, (step, expected) in enumerate(read_flow_scenario(scenario)):
            try:
                self._play_step(step)
            except ApiResponseError as error:
                if error.status != _NOT_ALLOWED or not expected.get("fieldErrors"):
                    raise NotSeen(f"steps[{index}] is not possible: {error}\n{self}") from None
            if difference := find_difference(take_snapshot(self.raw, self.response), name_errors(expected)):
                raise NotSeen(f"steps[{index}] does not lead to what it expects: {difference}\n{self}")
        return self

    def __str__(self) -> str:
        """Return what the phone shows, for the text of a failure."""
        lines = [f'the phone shows {self.status} {self.screen} "{self._view.get("title", "")}"'.replace(' ""', "")]
        for one in self._components:
            value = f" = {one['value']!r}" if one.get("value") not in (None, "", []) else ""
            text = one.get("label") or one.get("text") or ""
            name = f" {one['name']}" if one.get("name") else ""
            error = f" ({one['error']})" if one.get("error") else ""
            lines.append(f'  {one.get("type")}{name} "{text}"{value}{error}')
        if self._view.get("error"):
            lines.append(f"  {self._view['error']}")
        lines += [f"  endpoint: {one['diagnosis']}" for one in self.exchanges[-1:] if one.get("diagnosis")]
        return "\n".join(lines)

    @property
    def _view(self) -> Mapping[str, Any]:
        return object_of(self.raw.get("view"))

    @property
    def _components(self) -> list[dict[str, Any]]:
        return objects_in(self._view.get("components"))

    def _list_texts(self) -> Iterable[str]:
        yield str(self._view.get("title") or "")
        for one in self._components:
            yield from (str(one.get(name) or "") for name in _TEXTS)
            for option in objects_in(one.get("options")):
                yield from (str(option.get(name) or "") for name in ("title", "description", "metadata"))
        yield from (str(self._view.get(name) or "") for name in ("snackbar", "error"))

    def _play_step(self, step: Mapping[str, Any]) -> None:
        if "pointer" in step:
            value = look_up(take_snapshot(self.raw, self.response), step["pointer"])
            self.fill({step["fill"]: value})
        elif "submit" in step:
            self.submit()
        elif "item" in step:
            self.tap(self._path_of_item(str(step["item"])))
        elif step:
            self._step(step)

    def _path_of_item(self, item: str) -> str:
        options = [
            option
            for one in self._components
            if one.get("type") == "NavigationList"
            for option in objects_in(one.get("options"))
        ]
        found = [option["path"] for option in options if option["id"] == item]
        if not found:
            raise NotSeen(f"the screen has no item {item}\n{self}")
        return str(found[0])

    def _step(self, step: Mapping[str, Any]) -> Self:
        __tracebackhide__ = True
        body = {"steps": [dict(step)], "message_id": self._session_id}
        try:
            self._follow(self._control.json("POST", f"{self._path}/steps", body))
        except ApiResponseError as error:
            if error.status == _NOT_ALLOWED:  # the screen shows why, beside its fields
                self._follow(self._control.json("GET", f"{self._path}?message_id={self._session_id}"))
            raise
        return self

    def _follow(self, response: Mapping[str, Any]) -> None:
        self.raw = response
        for event in objects_in(response.get("events")):
            if event.get("type") == "exchange":
                self.exchanges.append(event)
            if event.get("type") == "completed":
                self.response = object_of(event.get("response"))


def read_flow_scenario(
    scenario: Sequence[Mapping[str, Any]] | Mapping[str, Any],
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each step in the form of the control API, with what is expected after it.

    A step that enters nothing is expected to lead to no errors, unless it names them. Besides the steps of the control
    API there are `{"fill": name, "pointer": …}`, `{"submit": True}` and `{"item": id}`; an empty one does nothing.

    Raises:
        ValueError: a step is none; the text says where, and what would be accepted.
    """
    steps: Any = scenario.get("steps") if isinstance(scenario, Mapping) else scenario
    if not isinstance(steps, list | tuple):
        raise ValueError("scenario: must be a list of steps, or an object whose `steps` is one")  # noqa: TRY004
    for index, step in enumerate(cast("Sequence[Any]", steps)):
        path = f"steps[{index}]"
        given = dict(object_of(step))
        expected = dict(object_of(given.pop("expect", None)))
        if unknown := [name for name in expected if name not in _EXPECTED]:
            raise ValueError(f"{path}.expect: cannot have {unknown[0]}; accepted: {', '.join(_EXPECTED)}")
        if not given and not expected:
            raise ValueError(f"{path}: must have one of {', '.join((*_OWN_STEPS, 'submit', 'click', 'expect'))}")
        step = _read_step(given, path)
        is_entry = "fill" in step or "choose" in step  # what is being entered may be incomplete
        yield step, expected if is_entry else {**_NO_ERRORS, **expected}


def _read_step(given: dict[str, Any], path: str) -> dict[str, Any]:
    names = set(given)
    if names == {"fill", "value"}:
        return {"fill": {str(given["fill"]): given["value"]}}
    if names == {"fill", "valueFrom"}:
        return {"fill": str(given["fill"]), "pointer": str(given["valueFrom"])}
    if names == {"click", "item"}:
        return {"item": given["item"]}
    if names == {"click"}:
        return {"tap": given["click"]}
    if names <= {"submit"} or (len(names) == 1 and names <= set(_OWN_STEPS)):
        return given
    accepted = f"one of {', '.join(_OWN_STEPS)}, submit, click with item, or fill with value or valueFrom"
    raise ValueError(f"{path}: cannot have {', '.join(sorted(names))}; accepted: {accepted}")


def take_snapshot(session: Mapping[str, Any], response: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is shown, in the form that scenarios compare with."""
    view = object_of(session.get("view"))
    components = objects_in(view.get("components"))
    named = {one["name"]: one for one in components if one.get("name")}
    state = str(view.get("state") or "")
    return {
        "status": _STATUSES.get(state, state),
        "screen": view.get("screen_id") or None,
        "title": view.get("title") or None,
        "history": session.get("history"),
        "data": session.get("data"),
        "fields": {name: _take_field(one) for name, one in named.items()},
        "fieldErrors": {name: True for name, one in named.items() if one.get("error")},
        "errorMessage": view.get("snackbar") or None,
        "canSubmit": not any(_lacks_value(one) for one in named.values()),
        "completion": None if response is None else dict(response),
    }


def _lacks_value(component: Mapping[str, Any]) -> bool:
    is_needed = component.get("required") and component.get("enabled", True)
    return bool(is_needed) and component.get("value") in (None, "", [], {}, False)


def name_errors(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is expected, with the names of the fields that have errors, without their texts."""
    if "fieldErrors" not in expected:
        return dict(expected)
    return {**expected, "fieldErrors": dict.fromkeys(object_of(expected["fieldErrors"]), True)}


def _take_field(component: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": component.get("type"),
        "label": component.get("label") or None,
        "value": component.get("value"),
        "required": bool(component.get("required")),
        "enabled": component.get("enabled", True),
        "error": component.get("error") or None,
        "options": [{"enabled": True, **option} for option in objects_in(component.get("options"))],
    }


def look_up(value: Any, pointer: str) -> Any:
    """Return what a JSON pointer leads to. Source: RFC 6901.

    Raises:
        ValueError: it leads nowhere.
    """
    found = value
    for name in pointer.split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        try:
            found = cast("list[Any]", found)[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"valueFrom: {pointer} leads nowhere, from {key} on") from error
    return found


def find_difference(actual: Any, expected: Any, path: str = "") -> str:
    """Return where a value differs from what is expected of it; empty if it does not.

    An object has to have the expected members, and none if none is expected; a list exactly the expected items.

    Args:
        path: of the value; empty: of the whole, of which an empty object expects nothing.
    """
    if isinstance(expected, Mapping):
        members = cast("Mapping[str, Any]", expected)
        if not isinstance(actual, Mapping) or (path and not members and actual):
            return f"{path or 'the value'} is {actual!r}, not {dict(members)!r}"
        has = cast("Mapping[str, Any]", actual)
        found = (find_difference(has.get(name), one, f"{path}/{name}") for name, one in members.items())
        return next(filter(None, found), "")
    if isinstance(expected, list):
        items = cast("list[Any]", expected)
        if not isinstance(actual, list) or len(cast("list[Any]", actual)) != len(items):
            return f"{path} is {actual!r}, not {items!r}"
        pairs = zip(cast("list[Any]", actual), items, strict=True)
        found = (find_difference(one, other, f"{path}/{index}") for index, (one, other) in enumerate(pairs))
        return next(filter(None, found), "")
    return "" if actual == expected else f"{path} is {actual!r}, not {expected!r}"
