"""Check a text of Flow JSON: the shape first, and only if it is right screens, data, references, actions and routes."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from waypost.flow_json import errors
from waypost.flow_json.action_checks import ActionCheck
from waypost.flow_json.component_checks import check_components
from waypost.flow_json.data_model import check_data_models, check_declarations
from waypost.flow_json.errors import Violations
from waypost.flow_json.flow import FlowView, view_flow
from waypost.flow_json.nodes import InvalidJsonError, JsonText, Node, parse_json
from waypost.flow_json.references import ReferenceCheck
from waypost.flow_json.routing import check_routes
from waypost.flow_json.schema import ShapeCheck
from waypost.flow_json.screen_checks import check_screens, check_shapes
from waypost.flow_json.versions import DATA_API_VERSIONS, VersionState, find_version

MAX_FLOW_JSON_BYTES: Final = 10 * 1024 * 1024


@dataclass(frozen=True)
class CheckedFlow:
    """A checked text.

    Attributes:
        view: None if the text is no JSON object.
        errors: as the operator writes them, `validation_errors`; empty if the Flow is valid.
        warnings: in the same form: what the operator accepts, and the handset cuts or leaves out.
    """

    view: FlowView | None
    errors: list[dict[str, Any]]
    warnings: list[dict[str, Any]] = field(default_factory=list)


def check_flow_json(text: str, expired: Collection[str] = ()) -> CheckedFlow:
    """Return what is wrong with a text of Flow JSON, in order of the places.

    Args:
        expired: versions that have expired since November 2026.
    """
    violations = Violations(JsonText(text))
    nothing = Node(None, (0, 0))
    size_bytes = len(text.encode(errors="replace"))
    if size_bytes > MAX_FLOW_JSON_BYTES:
        count = size_bytes - MAX_FLOW_JSON_BYTES
        violations.add(errors.TOO_LARGE, nothing, limit=MAX_FLOW_JSON_BYTES // 1024**2, count=count)
        return CheckedFlow(None, violations.json_errors())
    if not text.strip():
        violations.add(errors.MISSING_JSON, nothing)
        return CheckedFlow(None, violations.json_errors())
    try:
        root = parse_json(text)
    except InvalidJsonError as error:
        violations.add(errors.INVALID_JSON, Node(None, (error.offset, error.offset)), reason=f"{error.reason}.")
        return CheckedFlow(None, violations.json_errors())
    if not isinstance(root.value, dict):
        violations.add(errors.INVALID_JSON, root, reason="JSON is not an object.")
        return CheckedFlow(None, violations.json_errors())
    view = view_flow(root)
    violations.version = view.version
    if _check_version(view, violations, expired):
        _check_all(view, violations)
    return CheckedFlow(view, violations.json_errors(), violations.json_errors(warnings=True))


def _check_all(view: FlowView, violations: Violations) -> None:
    shape = ShapeCheck(violations, view.version)
    shape.check_flow(view.root)
    _check_data_api(view, violations)
    check_declarations(view, violations)
    check_shapes(view, violations)
    if violations.has_schema_errors():
        return
    check_screens(view, violations)
    check_components(view, violations)
    check_data_models(view, violations)
    references = ReferenceCheck(view, violations)
    references.check_dynamic(shape.dynamic)
    ActionCheck(view, references, violations).check(shape.actions)
    check_routes(view, shape.actions, violations)


def _check_version(view: FlowView, violations: Violations, expired: Collection[str]) -> bool:
    """Return True if the version of a Flow exists; by it everything else is judged."""
    node = view.root.members.get("version")
    if node is None:
        violations.add(errors.NO_VERSION, view.root)
        return False
    version = find_version(node.text or "")
    if version is None or version.state is VersionState.EXPIRED or node.text in expired:
        violations.add(errors.INVALID_VERSION, node)
        return False
    return True


def _check_data_api(view: FlowView, violations: Violations) -> None:
    node = view.root.members.get("data_api_version")
    if node is not None and node.text is not None:
        since = DATA_API_VERSIONS.get(node.text)
        if since is None or since > view.version:
            value = next(iter(DATA_API_VERSIONS))
            violations.add(errors.INVALID_CONSTANT, node, name="data_api_version", value=value)
