"""The validation errors of Flow JSON: a table of names and messages, and how one names its place.

Source: the operator's page "Error codes", static validation errors; its page "Flows API", `validation_errors`.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from waypost.flow_json.nodes import JsonText, Node, Span

SCHEMA: Final = "JSON_SCHEMA_ERROR"
FLOW: Final = "FLOW_JSON_ERROR"
MAX_ERRORS: Final = 200
"""Of one text; more would not help its author."""


@dataclass(frozen=True)
class FlowRule:
    """A rule that a Flow must satisfy.

    Attributes:
        error: the operator's name of the error.
        message: with fields in braces.
        error_type: `SCHEMA` or `FLOW`.
        is_warning: True if the operator accepts it, and the handset cuts or leaves out what is too much.
    """

    error: str
    message: str
    error_type: str = FLOW
    is_warning: bool = False


@dataclass(frozen=True)
class FlowViolation:
    """A violated rule, with its place.

    Attributes:
        span: of the wrong value or name, in characters.
    """

    rule: FlowRule
    message: str
    span: Span
    path: tuple[str | int, ...]


@dataclass
class Violations:
    """The findings of the checks of one text."""

    text: JsonText
    found: list[FlowViolation] = field(default_factory=list)

    def add(self, rule: FlowRule, node: Node, /, **values: object) -> None:
        """Note that a value violates a rule."""
        self._add(rule, node, node.span, values)

    def add_at_name(self, rule: FlowRule, node: Node, /, **values: object) -> None:
        """Note that the name of a value violates a rule."""
        self._add(rule, node, node.key_span or node.span, values)

    def json_errors(self, *, warnings: bool = False) -> list[dict[str, Any]]:
        """Return the errors, or the warnings, as the operator writes errors, in order of their places."""
        ordered = sorted(self.found, key=lambda one: (one.span.start, one.span.end))
        return [self._error(one) for one in ordered if one.rule.is_warning is warnings]

    def _add(self, rule: FlowRule, node: Node, span: Span, values: dict[str, object]) -> None:
        if len(self.found) < MAX_ERRORS:
            self.found.append(FlowViolation(rule, rule.message.format(**values), span, node.path))

    def _error(self, violation: FlowViolation) -> dict[str, Any]:
        line_start, column_start = self.text.position(violation.span.start)
        line_end, column_end = self.text.position(violation.span.end)
        position = {
            "line_start": line_start,
            "line_end": line_end,
            "column_start": column_start,
            "column_end": column_end,
        }
        return {
            "error": violation.rule.error,
            "error_type": violation.rule.error_type,
            "message": violation.message,
            **position,
            "pointers": [{**position, "path": pointer_text(violation.path)}] if violation.path else [],
        }


def pointer_text(path: tuple[str | int, ...]) -> str:
    """Return a path as the operator's pointers write it: `screens[0].layout.children[1].type`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def root_text(path: tuple[str | int, ...]) -> str:
    """Return a path as the operator's messages write it: `$root/screens/0/layout`."""
    return "/".join(["$root", *map(str, path)])


# fmt: off
INVALID_JSON = FlowRule("INVALID_FLOW_JSON", "Flow JSON is not valid: {reason}.", SCHEMA)
MISSING_JSON = FlowRule("INVALID_FLOW_JSON", "The Flow has no JSON yet.", SCHEMA)
TOO_LARGE = FlowRule("INVALID_FLOW_JSON", "Flow JSON has at most {limit} bytes, this one {count}.", SCHEMA)

UNKNOWN_PROPERTY = FlowRule("INVALID_PROPERTY_KEY", 'Property "{name}" cannot be specified at "{path}".', SCHEMA)
UNKNOWN_COMPONENT_PROPERTY = FlowRule(
    "INVALID_PROPERTY_KEY", 'Property "{name}" cannot be specified at {component} on "{path}".', SCHEMA)
NEWER_PROPERTY = FlowRule(
    "INVALID_PROPERTY_KEY", 'Property "{name}" at "{path}" needs Flow JSON {since}; this Flow has {version}.', SCHEMA)
OLDER_PROPERTY = FlowRule(
    "INVALID_PROPERTY_KEY", "Property '{name}' is no longer supported in Flow JSON as of version '{until}'. Please"
    " configure your endpoint URI using Flows API or Builder.", SCHEMA)
INVALID_VALUE = FlowRule("INVALID_PROPERTY_VALUE", "Invalid value found for property '{name}' at '{path}': {reason}",
                         SCHEMA)
INVALID_COMPONENT = FlowRule("INVALID_PROPERTY_VALUE", "Invalid value found for property 'type' at '{path}': there is"
                             " no component {value}.", SCHEMA)
NEWER_COMPONENT = FlowRule("INVALID_PROPERTY_VALUE", "Component {value} needs Flow JSON {since}; this Flow has"
                           " {version}.", SCHEMA)
MISPLACED_COMPONENT = FlowRule("INVALID_PROPERTY_VALUE", "Component {value} is not allowed at '{path}'.", SCHEMA)
INVALID_TYPE = FlowRule("INVALID_PROPERTY_TYPE", "Expected property {path} to be of type {expected}, but found"
                        " {found}.", SCHEMA)
INVALID_FORMAT = FlowRule("INVALID_PROPERTY_VALUE_FORMAT", "Property '{name}' should be in '{format}' format.", SCHEMA)
TOO_FEW_ITEMS = FlowRule("MIN_ITEMS_REQUIRED", "Property '{name}' should have at least {limit} items.", SCHEMA)
TOO_MANY_ITEMS = FlowRule("MAX_ITEMS_REQUIRED", "Property '{name}' should have at most {limit} items, but has"
                          " {count}; the others are not shown.", is_warning=True)
TOO_LONG = FlowRule("MAX_CHARS_REQUIRED", "Property '{name}' should have at most {limit} characters, but has {count};"
                    " the rest is cut off.", is_warning=True)
LARGE_PICTURE = FlowRule("MAX_SIZE_REQUIRED", "A picture of '{name}' should have at most {limit} kB, but has {count};"
                         " a placeholder is shown.", is_warning=True)
BLANK = FlowRule("PATTERN_MISMATCH", "Property '{name}' should not be blank or empty string.", SCHEMA)
MISSING_PROPERTY = FlowRule("MISSING_REQUIRED_PROPERTY", "Required property '{name}' is missing.", SCHEMA)
PATTERN = FlowRule("PATTERN_MISMATCH", "Property '{name}' should only consist of {rule}.", SCHEMA)
NOT_A_REFERENCE = FlowRule(
    "PATTERN_MISMATCH", "Property '{name}' should have dynamic data format of the form ${{data.your_value}}.", SCHEMA)
NOT_DYNAMIC = FlowRule("INVALID_PROPERTY_VALUE", "Property '{name}' cannot have dynamic data.", SCHEMA)
INVALID_CHOICE = FlowRule("INVALID_ENUM_VALUE", "Value should be one of: [{values}].", SCHEMA)
BELOW_MINIMUM = FlowRule("MINIMUM_VALUE_REQUIRED", "The minimum value allowed for property '{name}' is {limit}.")
ABOVE_MAXIMUM = FlowRule("MAXIMUM_VALUE_REQUIRED", "The maximum value allowed for property '{name}' is {limit}.")
MINIMUM_ABOVE_MAXIMUM = FlowRule(
    "MIN_VALUE_GREATER_THAN_MAX", "{minimum} cannot be greater than {maximum} for {component} {name}.")
CAPTION_PAIR = FlowRule(
    "INVALID_DEPENDENCIES", "Footer should have property {missing} when property {present} is present.", SCHEMA)
EXCLUSIVE = FlowRule("NOT_KEYWORD_SCHEMA_VALIDATION_FAILED", "Properties '{first}' and [{others}] must be present"
                     " exclusively at {component}.", SCHEMA)
SUCCESS_NOT_TERMINAL = FlowRule("NOT_KEYWORD_SCHEMA_VALIDATION_FAILED", "Property 'success' can only be specified on a"
                                " terminal screen.", SCHEMA)
NO_SUCCESS = FlowRule("INVALID_PROPERTY_VALUE", "At least one terminal screen must have property 'success' set as true.")
OUTSIDE_FORM_BEFORE_4 = FlowRule(
    "KEYWORD_ONE_OF", "Property '{component}' must be defined inside parent property 'Form'.", SCHEMA)
DEPENDENCY = FlowRule("INVALID_DEPENDENCIES", "{component} should have property {missing} when property {present} is"
                      " present.", SCHEMA)

NO_VERSION = FlowRule("MISSING_FLOW_JSON_VERSION", "Flow JSON version is not specified.")
INVALID_VERSION = FlowRule("INVALID_FLOW_JSON_VERSION", "Invalid Flow JSON version: {version}. Versions are {known}.")
EXPIRED_VERSION = FlowRule("UNSUPPORTED_FLOW_JSON_VERSION", "Unsupported Flow JSON version: {version}.")
INVALID_DATA_API = FlowRule("NO_SUPPORTED_DATA_API_VERSION", "No supported Data API version found for given Flow JSON"
                            " version: {version}. Versions are {known}.")

SCREENS_NOT_ROUTED = FlowRule(
    "INVALID_ROUTING_MODEL", "Following screens are missing in the routing model: [{screens}].")
UNKNOWN_SOURCE = FlowRule("INVALID_ROUTING_MODEL", "Invalid screens found in the routing model: [{screens}].")
UNKNOWN_DESTINATION = FlowRule("INVALID_ROUTING_MODEL", "Invalid screen found in the routing model: {screen}.")
SCREEN_ALONE = FlowRule("INVALID_ROUTING_MODEL", "Following screens are not connected with the rest of the screens"
                        "{via}: [{screens}]. All screens should be connected.")
NO_ENTRY = FlowRule("INVALID_ROUTING_MODEL", "No entry screen found in the routing model. {advice}")
LOOP = FlowRule("INVALID_ROUTING_MODEL", "Loop detected in the routing model for screens: [{screens}].")
TOO_MANY_BRANCHES = FlowRule(
    "INVALID_ROUTING_MODEL", "Number of branches exceeds the max limit of {limit} for screen: {screen}.")
BACKWARD_ROUTE = FlowRule("INVALID_ROUTING_MODEL", "Backward route [{destination}->{source}] corresponding to forward"
                          " route [{source}->{destination}] is not allowed in the routing model. Only forward routes can"
                          " be specified.")
MISSING_ROUTE = FlowRule("INVALID_ROUTING_MODEL", "Missing direct route from screen '{source}' to screen"
                         " '{destination}' in the routing model, while it exists in the navigate screen action of screen"
                         " '{source}'.")
NO_WAY_TO_END = FlowRule("INVALID_ROUTING_MODEL", "The entry screen {screen} leads to no terminal screen.")

MISSING_FORM_FIELD = FlowRule(
    "INVALID_ON_CLICK_ACTION_PAYLOAD", "Missing Form component {expression} for screen '{screen}'.")
MISSING_PAYLOAD_DATA = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Missing dynamic data '{expression}' in the data"
                                " model for screen {screen}.")
INVALID_PAYLOAD_VALUE = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Invalid value found for the property '{name}':"
                                 " {reason}")
FORM_AS_VALUE = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Value of 'Form' component cannot be used in form binding.")
PICKER_IN_NAVIGATE = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The {component} component's value is not allowed in"
                              " the payload of the navigate action.")
PICKER_TOP_LEVEL = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The {component} can only be used as the value of a"
                            " top-level string property in the action payload.")
TOO_MANY_FILES = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "In the complete action payload, {component} can only be"
                          " used if the value of the '{name}' property doesn't exceed {limit}.")
ONE_PICKER = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Complete action payload can contain either a single"
                      " PhotoPicker or a single DocumentPicker component.")
COMPLETE_NOT_TERMINAL = FlowRule(
    "INVALID_COMPLETE_ACTION", "On-click-action 'complete' can only be configured on a terminal screen.")
NO_DATA_MODEL = FlowRule(
    "INVALID_NAVIGATE_ACTION_PAYLOAD", "No data model is defined in the next screen '{screen}'.")
NOT_IN_DATA_MODEL = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "Following fields are missing in the next screen's data"
                             " model: [{fields}].")
NOT_IN_PAYLOAD = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "Following fields are expected in the next screen's data"
                          " model but missing in payload: [{fields}].")
PAYLOAD_TYPE = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "Schema of payload data at '{field}' on screen '{screen}' is"
                        " not matching with schema of data model field on screen '{next_screen}'. Property is expecting"
                        " '{expected}' but got '{found}'.")
UPDATE_UNKNOWN = FlowRule("INVALID_UPDATE_DATA_ACTION_PAYLOAD", "Following fields are missing in the data model of"
                          " screen '{screen}': [{fields}].")
SAME_SCREEN = FlowRule("INVALID_NAVIGATE_ACTION_NEXT_SCREEN_NAME", "Same screen navigation is not allowed. Loop"
                       " detected at [{screen}].")
UNKNOWN_SCREEN = FlowRule("INVALID_NAVIGATE_ACTION_NEXT_SCREEN_NAME", "Unknown screen ids found: [{screen}].")
ACTION_NEEDS_DATA_API = FlowRule("MISSING_REQUIRED_PROPERTY", "The property 'data_api_version' is required for"
                                 " data_exchange action.")
DATA_API_NEEDS_ROUTES = FlowRule("MISSING_REQUIRED_PROPERTY", "The property 'routing_model' is required for property"
                                 " 'data_api_version'.")
REFRESH_NEEDS_DATA_API = FlowRule("INVALID_PROPERTY_VALUE", "Property 'refresh_on_back' can be true only when property"
                                  " 'data_api_version' is set.")

MISSING_DATA = FlowRule(
    "INVALID_SCREEN_DYNAMIC_DATA", "Missing dynamic data '{expression}' in the screen data model.")
MISSING_FIELD = FlowRule(
    "INVALID_SCREEN_DYNAMIC_DATA", "Missing Form component {expression} for screen '{screen}'.")
DATA_TYPE = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Expected '{expression}' to be of type '{expected}', but it is"
                     " '{found}'.")
DATA_TYPES = FlowRule(
    "INVALID_SCREEN_DYNAMIC_DATA", "Expected '{expression}' to be of one of these types: [{expected}].")
MISSING_SCHEMA = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Data model schema is invalid for '{expression}'. Missing"
                          " schema for {name}.")
INDEX_IN_LIST = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "{expression} is invalid as '{name}' is defined in an array"
                         " schema in the data model.")
EXAMPLE_NOT_TOP = FlowRule("INVALID_SCREEN_DATA", "Property '__example__' is allowed only as a top level property of"
                           " data model. Invalid entry: '{path}'.")
NO_EXAMPLE = FlowRule("INVALID_SCREEN_DATA", "Missing the property '__example__' of '{name}'.")
NO_TYPE = FlowRule("INVALID_SCREEN_DATA", "Missing the definition of property 'type'.")
TYPE_NOT_TEXT = FlowRule("INVALID_SCREEN_DATA", "Expected the property 'type' to be of type string.")
UNKNOWN_TYPE = FlowRule("INVALID_SCREEN_DATA", "Expected the property 'type' to be one of [{values}], but found"
                        " '{found}'.")
NO_ITEMS = FlowRule("INVALID_SCREEN_DATA", "Missing the schema for property 'items' in array.")
ITEMS_TYPE = FlowRule("INVALID_SCREEN_DATA", "Expected the property 'items' to be of type boolean or object.")
NO_PROPERTIES = FlowRule("INVALID_SCREEN_DATA", "Missing the schema for property 'properties' in object.")
EXAMPLE_TYPE = FlowRule("INVALID_SCREEN_DATA", "Invalid data model schema. Expected property '__example__' to be of"
                        " type {expected}, but found {found}.")
GLOBAL_MISSING = FlowRule("INVALID_SCREEN_DATA", "Global dynamic data '{expression}' does not exist on screen"
                          " {referenced}, but is used on screen {screen}.")
GLOBAL_OWN_SCREEN = FlowRule("INVALID_SCREEN_DATA", "Global dynamic data '{expression}' used on screen '{screen}' is"
                             " invalid since screen '{screen}' represents current screen. Convert expression to local"
                             " referencing of the form ${{{local}}}.")
GLOBAL_NO_SCREEN = FlowRule("INVALID_SCREEN_DATA", "Global dynamic data '{expression}' used on screen '{screen}' is"
                            " invalid since screen '{referenced}' is missing in the Flow JSON.")
GLOBAL_BEFORE_4 = FlowRule("INVALID_PROPERTY_VALUE", "Global dynamic data '{expression}' needs Flow JSON 4.0; this Flow"
                           " has {version}.")
NESTED_BEFORE_6 = FlowRule("INVALID_PROPERTY_VALUE", "A nested expression in property '{name}' needs Flow JSON 6.0; this"
                           " Flow has {version}.")
INVALID_EXPRESSION = FlowRule("INVALID_PROPERTY_VALUE", "Property '{name}': {reason}")

TOO_MANY_SCREENS = FlowRule(
    "MAX_SCREENS_NUMBER", "Maximum number of screens allowed per Flow is {limit} but found {count}.")
TOO_MANY_ON_SCREEN = FlowRule(
    "MAX_COMPONENTS_PER_SCREEN", "Maximum number of components allowed per screen is {limit} but found {count}.")
DUPLICATE_NAME = FlowRule("DUPLICATE_FORM_COMPONENT_NAMES", "Duplicate name found for Form components: {name}.")
DUPLICATE_SCREEN = FlowRule("DUPLICATE_SCREEN_IDS", "Duplicate screen id found: {screen}.")
RESERVED_SCREEN = FlowRule(
    "SCREEN_ID_IS_RESERVED_KEYWORD", "Screen id cannot be 'success' since it is a reserved keyword.")
NO_FOOTER = FlowRule(
    "MISSING_FOOTER_ON_TERMINAL_SCREEN", "Footer component is missing on terminal screens: [{screen}].")
NO_TERMINAL = FlowRule("MISSING_TERMINAL_SCREEN", "Terminal screen is required but not provided.")
OUTSIDE_FORM = FlowRule(
    "COMPONENTS_OUTSIDE_FORM", "Component '{component}' is not allowed outside Form when Form component is present.")
FOOTER_OUTSIDE_FORM = FlowRule("INVALID_FOOTER_PAYLOAD_OUTSIDE_FORM", "Footer placed outside Form component is not"
                               " allowed to reference form data.")
NO_ELSE_FOOTER = FlowRule("MISSING_FOOTER_IN_IF_ELSE_BRANCHES", "Missing Footer inside one of the if branches. Branch"
                          ' "else" should exist and contain one Footer.')
ONE_BRANCH_FOOTER = FlowRule("MISSING_FOOTER_IN_IF_ELSE_BRANCHES", "Missing Footer inside one of the if branches.")
NESTED_FOOTER = FlowRule("INVALID_PROPERTY_VALUE", "A Footer is allowed only in the first level of If, not in a nested"
                         " If.")
ONE_CASE_FOOTER = FlowRule("MISSING_FOOTER_IN_SWITCH_BRANCHES", "Footer component must be present in all switch cases if"
                           " it exists in any one case.")
MORE_FOOTERS = FlowRule("MORE_THAN_ONE_FOOTER", "You can only have 1 Footer component per screen.")
EMPTY_LIST = FlowRule("INVALID_PROPERTY_VALUE", 'Invalid value found at: "{path}" due to empty array. It should contain'
                      " at least one component.", SCHEMA)
EMPTY_CASES = FlowRule("INVALID_PROPERTY_VALUE", 'Invalid empty property found at: "{path}".', SCHEMA)
TOO_DEEP_IF = FlowRule("INVALID_PROPERTY_VALUE", "It is allowed to nest up to {limit} If components.")
CONDITION_TYPE = FlowRule("INVALID_PROPERTY_VALUE", "Expected property 'condition' to be a boolean, but it is {found}.")
CONDITION_LITERAL = FlowRule(
    "INVALID_PROPERTY_VALUE", "The only operand is a literal value. Expected single operand to be a boolean.")
PICKER_INITIAL = FlowRule("NATIVE_COMPONENT_IN_FORM_INIT_VALUES", "Property 'init-values' should not contain value for"
                          " components: [{component}].")
INITIAL_TYPE = FlowRule("INVALID_PROPERTY_TYPE", "Expected property '{name}' of init-values to be of type {expected},"
                        " but found {found}.")
BOTH_PICKERS = FlowRule("MAX_PICKER_PER_SCREEN", "You can only have a maximum of 1 component of type PhotoPicker or"
                        " DocumentPicker per screen.")
NOT_ALONE = FlowRule("INVALID_PROPERTY_VALUE", "{component} cannot be used in combination with {other} in the same"
                     " screen.")
LIST_ON_TERMINAL = FlowRule("INVALID_PROPERTY_VALUE", "NavigationList cannot be used on a terminal screen.")
LIST_ACTION = FlowRule("MISSING_REQUIRED_PROPERTY", "Required property 'on-click-action' is missing: it is given"
                       " once at NavigationList or on each item.", SCHEMA)
ONE_BADGE = FlowRule("INVALID_PROPERTY_VALUE", "There can be only one item with a badge per NavigationList.")
END_WITH_LARGE = FlowRule("NOT_KEYWORD_SCHEMA_VALIDATION_FAILED", "Properties 'end' and [media-size: large] must be"
                          " present exclusively at NavigationList.", SCHEMA)
UNKNOWN_SENSITIVE = FlowRule(
    "INVALID_PROPERTY_VALUE", "Property 'sensitive' names '{name}', which is no input of screen '{screen}'.")
# fmt: on


def too_many(component: str) -> FlowRule:
    """Return the rule for the number of a type on a screen: `MAX_EMBEDDED_LINK_PER_SCREEN` and its siblings."""
    upper = "".join(f"_{letter}" if letter.isupper() else letter for letter in component).strip("_").upper()
    return FlowRule(
        f"MAX_{upper}_PER_SCREEN", "You can only have a maximum of {limit} component of type {component} per screen."
    )
