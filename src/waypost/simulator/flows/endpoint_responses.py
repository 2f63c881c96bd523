"""Checks of a decrypted response of an endpoint: those of handsets, and what only the documentation requires.

Source: the operator's page "Implementing endpoint for Flows"; decision 0130, for what its preview page checks.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from waypost.base.json_values import list_of, object_of, object_or_none, objects_in, text_or_none, texts_in
from waypost.flow_json.nodes import json_type

SUCCESS: Final = "SUCCESS"
"""The screen that ends a Flow."""
INVALID_TRANSITION: Final = "invalid-screen-transition"
INVALID_PAYLOAD: Final = "payload-schema-error"
_FINAL_FORM: Final = '{"screen": "SUCCESS", "data": {"extension_message_response": {"params": {"flow_token": "…"}}}}'

# fmt: off
_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {  # of a declaration: the types that fit
    "array":   (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null":    (type(None),),
    "number":  (int, float),
    "object":  (dict,),
    "string":  (str,),
}
# fmt: on


class ResponseCheck(NamedTuple):
    """The result: the operator's name of what is wrong, for people, and what is against the documentation only."""

    error_type: str = ""
    problem: str = ""
    warnings: tuple[str, ...] = ()


def check_response(
    content: dict[str, Any], name: str, request: dict[str, Any], response: dict[str, Any]
) -> ResponseCheck:
    """Check a response.

    Args:
        content: the Flow JSON.
        name: of the request, see `faults.fault_kinds.ENDPOINT_REQUESTS`.
        request: decrypted.
        response: decrypted.
    """
    warnings = tuple(_find_version_warning(request, response))
    match name:
        case "ping":
            check = _check_ping(response)
        case "error_notice":
            is_acknowledged = object_of(response.get("data")).get("acknowledged") is True
            text = 'The response to an error notice must be {"data": {"acknowledged": true}}.'
            return ResponseCheck(warnings=warnings if is_acknowledged else (*warnings, text))
        case _:
            check = _check_screen(content, request, response)
    return check._replace(warnings=(*check.warnings, *warnings))


def _check_ping(response: dict[str, Any]) -> ResponseCheck:
    if object_of(response.get("data")).get("status") == "active":
        return ResponseCheck()
    return ResponseCheck(INVALID_PAYLOAD, 'The response to the health check must be {"data": {"status": "active"}}.')


def _find_version_warning(request: dict[str, Any], response: dict[str, Any]) -> Iterator[str]:
    version = response.get("version")
    if version is not None and version != request.get("version"):
        sent = str(version)[:20]
        yield f"The response has version {sent}, the request {request.get('version')}; leave it out, or send the same."


def _check_screen(content: dict[str, Any], request: dict[str, Any], response: dict[str, Any]) -> ResponseCheck:
    screen_id = text_or_none(response.get("screen"))
    if screen_id is None:
        rule = "has no screen" if "screen" not in response else "has a screen that is no text"
        return ResponseCheck(INVALID_PAYLOAD, f"The response {rule}; it must name the next screen, or SUCCESS.")
    data = object_or_none(response.get("data"))
    if data is None:
        rule = "has no data" if "data" not in response else "has data that is no object"
        return ResponseCheck(INVALID_PAYLOAD, f"The response {rule}; it must be an object, if only an empty one.")
    if (message := data.get("error_message")) is not None and not isinstance(message, str):
        return ResponseCheck(INVALID_PAYLOAD, "data.error_message of the response is no text.")
    if screen_id == SUCCESS:
        return _check_end(request, data)
    screens = {str(screen.get("id")): screen for screen in objects_in(content.get("screens"))}
    if screen_id not in screens:
        known = ", ".join([*screens, SUCCESS])
        text = f"The response names the screen {screen_id[:80]}, which the Flow does not have; it has {known}."
        return ResponseCheck(INVALID_TRANSITION, text)
    current = text_or_none(request.get("screen")) or ""
    is_list = _is_navigation_list(screens.get(current, {}))
    if problem := _find_routing_problem(content, request, current, screen_id, is_list=is_list):
        return ResponseCheck(INVALID_TRANSITION, problem)
    declared = object_of(screens[screen_id].get("data"))
    extra = [name for name in data if name not in declared and name != "error_message"]
    if extra and "data" not in screens[screen_id]:
        return ResponseCheck(INVALID_PAYLOAD, f"The screen {screen_id} declares no data, and the response has some.")
    required = texts_in(declared.get("required")) if screen_id != current else []  # a refresh has only what changes
    if problem := _find_data_problem(declared, data, [*declared] if is_list else required):
        return ResponseCheck(INVALID_PAYLOAD, f"The data for the screen {screen_id}: {problem}")
    warning = f"The screen {screen_id} declares no {', '.join(extra[:10])}: handsets ignore it."
    return ResponseCheck(warnings=(warning,) if extra else ())


def _check_end(request: dict[str, Any], data: dict[str, Any]) -> ResponseCheck:
    response = object_or_none(data.get("extension_message_response"))
    params = object_or_none(response.get("params")) if response is not None else None
    if params is None:
        return ResponseCheck(
            INVALID_PAYLOAD, f"The response ends the Flow without its params; it must be {_FINAL_FORM}."
        )
    if "flow_token" not in params:
        return ResponseCheck(warnings=("The params of the end have no flow_token, which the documentation requires.",))
    if params["flow_token"] == request.get("flow_token"):
        return ResponseCheck()
    return ResponseCheck(warnings=("The params of the end have another flow_token than the request; return the same.",))


def _is_navigation_list(screen: dict[str, Any]) -> bool:
    children = objects_in(object_of(screen.get("layout")).get("children"))
    return any(child.get("type") == "NavigationList" for child in children)


def _find_routing_problem(
    content: dict[str, Any], request: dict[str, Any], current: str, next_id: str, *, is_list: bool
) -> str:
    """Return why a screen cannot follow the current one; empty if it can.

    It can along a route and back along one; a Flow opens with a screen to which no route leads.
    """
    routes = {name: texts_in(targets) for name, targets in object_of(content.get("routing_model")).items()}
    if not routes:
        return ""
    if request.get("action") == "INIT":
        is_inner = any(next_id in targets for targets in routes.values())
        text = f"The Flow cannot open with {next_id}: the routing model has a route to it."
        return text if is_inner else ""
    if current not in routes:
        return ""
    allowed = [*routes[current], *(name for name, targets in routes.items() if current in targets)]
    if not is_list:  # what follows a list must be another screen
        allowed.append(current)
    if next_id in allowed:
        return ""
    listed = ", ".join([*allowed, SUCCESS])
    return (
        f"The response leads from {current} to {next_id}, which the routing model does not allow; it allows {listed}."
    )


def _find_data_problem(declared: dict[str, Any], data: dict[str, Any], required: list[str]) -> str:
    missing = [name for name in required if name not in data]
    if missing:
        return f"{missing[0]} is missing, and required."
    for name, value in data.items():
        schema = object_or_none(declared.get(name))
        if schema is not None and (problem := _find_type_problem(value, schema, name)):
            return problem
    return ""


def _find_type_problem(value: Any, schema: dict[str, Any], path: str) -> str:
    expected = text_or_none(schema.get("type")) or ""
    types = _JSON_TYPES.get(expected)
    if types is None:
        return ""
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"{path} is declared as {expected}, and is {json_type(value)}."
    if expected == "array" and (items := object_or_none(schema.get("items"))) is not None:
        problems = (_find_type_problem(item, items, f"{path}[{index}]") for index, item in enumerate(list_of(value)))
        return next(filter(None, problems), "")
    if expected == "object":
        return _find_member_problem(object_of(value), schema, path)
    return ""


def _find_member_problem(value: dict[str, Any], schema: dict[str, Any], path: str) -> str:
    missing = [name for name in texts_in(schema.get("required")) if name not in value]
    if missing:
        return f"{path}.{missing[0]} is missing, and required."
    properties = object_of(schema.get("properties"))
    problems = (
        _find_type_problem(value[name], member, f"{path}.{name}")
        for name in value
        if (member := object_or_none(properties.get(name))) is not None
    )
    return next(filter(None, problems), "")
