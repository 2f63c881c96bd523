"""The validation errors of Flow JSON: a table of names and messages, and how one names its place.

Source: public page "Error codes", static validation errors; public page "Validator of Flow JSON", the operator's own
validator as its web pages deliver it, for names, messages, places and the versions that a rule binds.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from waypost.flow_json.nodes import JsonText, Node, Span
from waypost.flow_json.versions import Version

SCHEMA: Final = "JSON_SCHEMA_ERROR"
FLOW: Final = "FLOW_JSON_ERROR"
MAX_ERRORS: Final = 200
"""Of one text; more would not help its author."""
_EVERY_VERSION: Final[tuple[Version, Version]] = ((0, 0), (999, 0))


@dataclass(frozen=True)
class FlowRule:
    """A rule that a Flow must satisfy.

    Attributes:
        error: the operator's name of the error.
        message: with fields in braces.
        error_type: `SCHEMA` or `FLOW`. A Flow with an error of the first type gets no errors of the second.
        accepted: from which version up to before which one the operator accepts it nevertheless; it is a warning there.
    """

    error: str
    message: str
    error_type: str = FLOW
    accepted: tuple[Version, Version] | None = None

    def is_warning(self, version: Version) -> bool:
        """Return True if the operator accepts it in a version, and the handset cuts, leaves out or does nothing."""
        return self.accepted is not None and self.accepted[0] <= version < self.accepted[1]


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
    """The findings of the checks of one text.

    Attributes:
        version: that of the Flow, which decides what is only a warning.
    """

    text: JsonText
    version: Version = (0, 0)
    found: list[FlowViolation] = field(default_factory=list)

    def add(self, rule: FlowRule, node: Node, /, **values: object) -> None:
        """Note that a value violates a rule."""
        self._add(rule, node, node.span, values)

    def add_at_name(self, rule: FlowRule, node: Node, /, **values: object) -> None:
        """Note that the name of a value violates a rule."""
        self._add(rule, node, node.key_span or node.span, values)

    def is_full(self) -> bool:
        """Return True if nothing more is noted: long lists need not be read to their end."""
        return len(self.found) >= MAX_ERRORS

    def has_schema_errors(self) -> bool:
        """Return True if the shape is wrong: the operator then reports nothing else."""
        return any(one.rule.error_type == SCHEMA and not one.rule.is_warning(self.version) for one in self.found)

    def json_errors(self, *, warnings: bool = False) -> list[dict[str, Any]]:
        """Return the errors, or the warnings, as the operator writes errors, in order of their places."""
        ordered = sorted(self.found, key=lambda one: one.span)
        return [self._error(one) for one in ordered if one.rule.is_warning(self.version) is warnings]

    def _add(self, rule: FlowRule, node: Node, span: Span, values: dict[str, object]) -> None:
        if not self.is_full():
            self.found.append(FlowViolation(rule, rule.message.format(**values), span, node.path))

    def _error(self, violation: FlowViolation) -> dict[str, Any]:
        line_start, column_start = self.text.position(violation.span[0])
        line_end, column_end = self.text.position(violation.span[1])
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
    """Return a path as the operator's messages write it: `/$root/screens/0/layout`."""
    return "/".join(["/$root", *map(str, path)])


def step_name(path: tuple[str | int, ...]) -> str:
    """Return the last step of a path as the operator's messages write it: `label`, `data-source/0`."""
    return "/".join(map(str, path[-2 if path and isinstance(path[-1], int) else -1 :]))


# fmt: off
INVALID_JSON = FlowRule("INVALID_FLOW_JSON", "Flow JSON is not valid. {reason}", SCHEMA)
MISSING_JSON = FlowRule("INVALID_FLOW_JSON", "The Flow has no JSON yet.", SCHEMA)
TOO_LARGE = FlowRule("INVALID_FLOW_JSON", "The maximum size of the Flow JSON is {limit} MB. But your Flow JSON size"
                     " exceeds the maximum size by {count} bytes.", SCHEMA)
NO_VERSION = FlowRule("MISSING_FLOW_JSON_VERSION", "Flow JSON version is not specified.", SCHEMA)
INVALID_VERSION = FlowRule("INVALID_FLOW_JSON_VERSION", "Given Flow JSON version is not supported. Please refer the"
                           " supported versions at https://developers.facebook.com/docs/whatsapp/flows/changelogs"
                           "#currently-supported-versions.", SCHEMA)

UNKNOWN_PROPERTY = FlowRule("INVALID_PROPERTY_KEY", "Property '{name}' is not allowed.", SCHEMA)
UNKNOWN_COMPONENT_PROPERTY = FlowRule(
    "INVALID_PROPERTY_KEY", "Property '{name}' is not allowed in '{component}' component.", SCHEMA)
OLDER_PROPERTY = FlowRule(
    "INVALID_PROPERTY_KEY", "Property '{name}' is no longer supported in Flow JSON as of version '{until}'. Please"
    " configure your endpoint URI using Flows API or Builder. Refer Flows documentation at"
    " https://developers.facebook.com/docs/whatsapp/flows for more information.", SCHEMA)
LIST_ON_TERMINAL = FlowRule("INVALID_PROPERTY_KEY", "Property 'terminal' is not allowed.")
INVALID_COMPONENT = FlowRule(
    "ONE_OF_SCHEMA_VALIDATION_FAILED", "Invalid value found for property 'type'.", SCHEMA)
INVALID_CONSTANT = FlowRule(
    "INVALID_PROPERTY_VALUE", "Invalid value found for property '{name}'. Expected '{value}'.", SCHEMA)
INVALID_TYPE = FlowRule("INVALID_PROPERTY_TYPE", "Expected property '{name}' to be of type '{expected}' but found"
                        " '{found}'.", SCHEMA)
NOT_DYNAMIC_FORM = FlowRule(
    "PATTERN_MISMATCH", "Property '{name}' should be of type '{expected}' or have dynamic data format of the form"
    " ${{screen.data.your_value}} or ${{data.your_value}}.", SCHEMA)
NOT_A_REFERENCE = FlowRule("PATTERN_MISMATCH", "Property '{name}' should have dynamic data format of the form"
                           " ${{screen.data.your_value}} or ${{data.your_value}}.", SCHEMA)
DYNAMIC_NAME = FlowRule("PATTERN_MISMATCH", "Property '{name}' should not be dynamic data format of the form"
                        " ${{screen.data.your_value}} or ${{data.your_value}}.", SCHEMA)
NESTED_NAME = FlowRule("PATTERN_MISMATCH", "Property '{name}' should not be enclosed in backticks.", SCHEMA)
BLANK = FlowRule("PATTERN_MISMATCH", "Property '{name}' should not be blank or an empty string.", SCHEMA)
PATTERN = FlowRule("PATTERN_MISMATCH", "Property '{name}' should {rule}.", SCHEMA)
NAME_PATTERN = FlowRule("PATTERN_MISMATCH", "'{name}' should {rule}.", SCHEMA)
INVALID_FORMAT = FlowRule("INVALID_PROPERTY_VALUE_FORMAT", "Property '{name}' should be in '{format}' format.", SCHEMA)
TOO_FEW_ITEMS = FlowRule("MIN_ITEMS_REQUIRED", "Property '{name}' should have at least '{limit}' item.", SCHEMA)
TOO_MANY_TAGS = FlowRule("MAX_ITEMS_REQUIRED", "Property '{name}' should have at most '{limit}' items.", SCHEMA)
TOO_FEW_CHARS = FlowRule(
    "MIN_CHARS_REQUIRED", "Property '{name}' should have at least '{limit}' character(s).", SCHEMA)
MISSING_PROPERTY = FlowRule("MISSING_REQUIRED_PROPERTY", "Required property '{name}' is missing.", SCHEMA)
INVALID_CHOICE = FlowRule("INVALID_ENUM_VALUE", "Value should be one of: [{values}].", SCHEMA)
BELOW_MINIMUM = FlowRule(
    "MINIMUM_VALUE_REQUIRED", "The minimum value allowed for property '{name}' is {limit}.", SCHEMA)
ABOVE_MAXIMUM = FlowRule(
    "MAXIMUM_VALUE_REQUIRED", "The maximum value allowed for property '{name}' is {limit}.", SCHEMA)
CAPTION_PAIR = FlowRule(
    "INVALID_DEPENDENCIES", "Footer should have property {missing} when property {present} is present.", SCHEMA)
EXCLUSIVE = FlowRule("NOT_KEYWORD_SCHEMA_VALIDATION_FAILED", "Properties '{first}' and [{others}] must be present"
                     " exclusively at {component}.", SCHEMA)
NOT_IN_ACTION = FlowRule("NOT_KEYWORD_SCHEMA_VALIDATION_FAILED", "Property '{name}' cannot be specified at"
                         " on-click-action '{action}'.", SCHEMA)
SUCCESS_NOT_TERMINAL = FlowRule("NOT_KEYWORD_SCHEMA_VALIDATION_FAILED", "Property 'success' can only be specified on a"
                                " terminal screen.", SCHEMA)
OUTSIDE_FORM_BEFORE_4 = FlowRule(
    "KEYWORD_ONE_OF", "Property '{component}' must be defined inside parent property 'Form'.", SCHEMA)

TOO_MANY_ITEMS = FlowRule("MAX_ITEMS_REQUIRED", "Property '{name}' should have at most {limit} items, but has"
                          " {count}; the others are not shown.", accepted=_EVERY_VERSION)
TOO_LONG = FlowRule("MAX_CHARS_REQUIRED", "Property '{name}' should have at most {limit} characters, but has {count};"
                    " the rest is cut off.", accepted=_EVERY_VERSION)
LARGE_PICTURE = FlowRule("MAX_SIZE_REQUIRED", "A picture of '{name}' should have at most {limit} kB, but has {count};"
                         " a placeholder is shown.", accepted=_EVERY_VERSION)
NO_PICTURE = FlowRule("INVALID_PROPERTY_VALUE", "Property '{name}' is no JPEG, PNG or WEBP file in base64; a placeholder"
                      " is shown.", accepted=_EVERY_VERSION)
PLAIN_MIXED = FlowRule("INVALID_PROPERTY_VALUE", "Property '{name}' is shown as it is written: a reference beside other"
                       " text needs a nested expression in backticks, from Flow JSON 6.0.", accepted=_EVERY_VERSION)
MANY_ON_SCREEN = FlowRule("MAX_ALLOWED_COMPONENTS_PER_SCREEN", "A screen should have at most {limit} components, but has"
                          " {count}.", accepted=_EVERY_VERSION)
CYCLE = FlowRule("INVALID_ROUTING_MODEL", "Screens lead back to one another: [{screens}].", accepted=_EVERY_VERSION)
NO_WAY_TO_END = FlowRule("INVALID_ROUTING_MODEL", "The entry screen {screen} leads to no terminal screen.",
                         accepted=_EVERY_VERSION)

MISSING_SCREENS = FlowRule(
    "INVALID_ROUTING_MODEL", "Following screens are missing in the routing model: [{screens}].")
INVALID_SCREENS = FlowRule("INVALID_ROUTING_MODEL", "Invalid screens found in the routing model: [{screens}].")
SCREEN_ALONE = FlowRule("INVALID_ROUTING_MODEL", "Following screens are not connected with the rest of the screens"
                        "{via}: [{screens}]. All screens should be connected.")
NO_ENTRY = FlowRule("INVALID_ROUTING_MODEL", "No entry screen found in the routing model. {advice}")
LOOP = FlowRule("INVALID_ROUTING_MODEL", "Loop detected in the routing model for screens: [{screens}].")
TOO_MANY_BRANCHES = FlowRule(
    "INVALID_ROUTING_MODEL", "Number of branches exceeds the max limit of {limit} for screens: [{screen}].{advice}")
BACKWARD_ROUTE = FlowRule("INVALID_ROUTING_MODEL", "Backward route [{destination}->{source}] corresponding to forward"
                          " route [{source}->{destination}] is not allowed in the routing model. Only forward routes can"
                          " be specified.")
MISSING_ROUTE = FlowRule("INVALID_ROUTING_MODEL", "Missing direct route from screen '{source}' to screen"
                         " '{destination}' in the routing model, while it exists in the navigate screen action of screen"
                         " '{source}'.")

MISSING_FORM_FIELD = FlowRule(
    "INVALID_ON_CLICK_ACTION_PAYLOAD", "Missing Form component {expression} for screen '{screen}'.")
MISSING_PAYLOAD_DATA = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Missing dynamic data '{expression}' in the data"
                                " model for screen {screen}.")
MISSING_PAYLOAD_SCREEN = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The screen id '{referenced}' referenced in the"
                                  " dynamic binding expression '{expression}' does not exist.")
FORM_AS_VALUE = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Value of 'Form' component cannot be used in form binding.")
PICKER_IN_NAVIGATE = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The value of {component} component is not allowed in"
                              " the payload of navigate action.")
PICKER_TOP_LEVEL = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The value of following components must be a top-level"
                            " string in complete and data_exchange on-click-action payload: [PhotoPicker,"
                            " DocumentPicker].")
TOO_MANY_FILES = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The aggregated maximum uploaded files of the PhotoPicker"
                          " and DocumentPicker components cannot exceed {limit} when using in the complete action"
                          " payload. If 'max-uploaded-photos' or 'max-uploaded-documents' property is not set, the default"
                          " uploaded files count is {default}.")
TOO_LARGE_FILES = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "The aggregated size of maximum uploaded files of the"
                           " PhotoPicker and DocumentPicker components cannot exceed {limit} KB when using in the complete"
                           " action payload. If 'max-file-size-kb' property is not set, the default file size is {default}"
                           " KB.")
ONE_PICKER = FlowRule("INVALID_ON_CLICK_ACTION_PAYLOAD", "Complete action payload can contain either a single"
                      " PhotoPicker or a single DocumentPicker component.")
FOOTER_OUTSIDE_FORM = FlowRule("INVALID_FOOTER_PAYLOAD_OUTSIDE_FORM", "Footer placed outside Form component is not"
                               " allowed to reference form data.")
PAYLOAD_EXPRESSION = FlowRule("INVALID_ACTION_PAYLOAD_PROPERTY", "{reason}", accepted=((6, 0), (7, 2)))
COMPLETE_NOT_TERMINAL = FlowRule(
    "INVALID_COMPLETE_ACTION", "On-click-action 'complete' can only be configured on a terminal screen.")
NO_PAYLOAD = FlowRule("MISSING_NAVIGATION_ACTION_PAYLOAD", "Property 'payload' is required when the next screen's data"
                      " model is not empty.", accepted=((6, 0), (7, 3)))
NO_DATA_MODEL = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "No data model is defined in the next screen '{screen}'.",
                         accepted=((6, 0), (7, 3)))
NOT_IN_DATA_MODEL = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "Following fields are missing in the next screen's data"
                             " model: [{fields}].", accepted=((6, 0), (7, 3)))
NOT_IN_PAYLOAD = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "Following fields are expected in the next screen's data"
                          " model but missing in payload: [{fields}].", accepted=((6, 0), (7, 3)))
PAYLOAD_REFERENCE = FlowRule("INVALID_NAVIGATE_ACTION_PAYLOAD", "Schema of dynamic data '{expression}' is not matching"
                             " schema of data model field '{field}' on screen '{next_screen}'. Property is expecting"
                             " '{expected}' but got '{found}'.")
PAYLOAD_VALUE = FlowRule("INVALID_NAVIGATE_ACTION_STATIC_DATA", "Schema of payload data at '{field}' on screen"
                         " '{screen}' is not matching with schema of data model field on screen '{next_screen}'. Property"
                         " is expecting '{expected}' but got {found}.")
NOT_DECLARED = FlowRule("INVALID_NAVIGATE_ACTION_STATIC_DATA", "The payload field '{field}' on screen '{screen}' is"
                        " missing in the data model of screen '{next_screen}'.")
UPDATE_NO_MODEL = FlowRule(
    "INVALID_UPDATE_DATA_ACTION_PAYLOAD", "No data model is defined in the screen '{screen}'.")
UPDATE_UNKNOWN = FlowRule("INVALID_UPDATE_DATA_ACTION_PAYLOAD", "Following fields are missing in the screen '{screen}'"
                          " data model: [{fields}].")
UPDATE_REFERENCE = FlowRule("INVALID_UPDATE_DATA_ACTION_PAYLOAD", PAYLOAD_REFERENCE.message)
UPDATE_VALUE = FlowRule("INVALID_UPDATE_DATA_ACTION_PAYLOAD", PAYLOAD_VALUE.message)
UPDATE_SELF = FlowRule("INVALID_UPDATE_DATA_ACTION_PAYLOAD", "Attempting to update a key with its own value is redundant"
                       " and not allowed.")
SELECT_TWICE = FlowRule("INVALID_UPDATE_DATA_ACTION_PAYLOAD", "The '{name}' property cannot be used at both the"
                        " component and data-source levels.")
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
MISSING_FIELD = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "{kind} '{expression}' from screen '{referenced}' does not"
                         " exist, but is used on screen '{screen}'.")
FORM_AS_DATA = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", FORM_AS_VALUE.message)
DATA_NAME = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Invalid format of dynamic data '{expression}' in the screen data"
                     " model. Please avoid \"-\", \" \", \"`\" or \"'\".")
NO_MEMBER = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "{kind} '{expression}' is invalid as its schema is missing in the"
                     " data model of screen '{referenced}'.")
INDEX_IN_LIST = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "{expression} on screen '{referenced}' for {component} property"
                         " '{name}' is invalid as '{member}' is defined in an array schema in the data model.")
DATA_TYPE = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Expected '{pointer}' to be of type '{expected}'.")
DATA_TYPES = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Expected '{pointer}' to be of one of these types: [{expected}].")
FIELD_TYPE = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Found invalid {kind}. Expected '{expression}' to be of type"
                      " '{expected}'.")
MISSING_SCHEMA = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Data model schema is invalid for '{expression}'. Missing"
                          " schema for {name}.")
GLOBAL_OWN_SCREEN = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Global dynamic data '{expression}' used on screen"
                             " '{screen}' for {component} property '{name}' is invalid since screen '{screen}' represents"
                             " current screen. Convert expression to local referencing of the form"
                             " ${{data.<property>}}.")
GLOBAL_NO_SCREEN = FlowRule("INVALID_SCREEN_DYNAMIC_DATA", "Global dynamic data '{expression}' used on screen '{screen}'"
                            " for {component} property '{name}' is invalid since screen '{referenced}' is missing in the"
                            " Flow JSON.")
GLOBAL_BEFORE_4 = FlowRule("INVALID_PROPERTY_VALUE", "Global dynamic data '{expression}' needs Flow JSON 4.0; this Flow"
                           " has {version}.")
LIST_ITEM_DYNAMIC = FlowRule("INVALID_TEXT_DYNAMIC_DATA", "Every item of the array in the 'text' property of {component}"
                             " on the screen '{screen}' should be a static string. Please remove dynamic binding -"
                             " {expression} from the item of the array.")
MIXED_RICH_TEXT = FlowRule(
    "INVALID_PROPERTY_VALUE", "String interpolation is not supported by RichText component. Either use static value"
    " (e.g. \"# Title\") or dynamic only (e.g. \"${{data.title}}\").", accepted=((0, 0), (6, 0)))
INVALID_NESTED = FlowRule("INVALID_PROPERTY_VALUE", 'Error while parsing dynamic expression "{expression}". {reason}')

EXAMPLE_NOT_TOP = FlowRule("INVALID_SCREEN_DATA", "Property '__example__' is allowed only as a top level property of"
                           " data model. Invalid entry: '{path}'.")
NO_TYPE = FlowRule("INVALID_SCREEN_DATA", "Missing the definition of property 'type'.")
TYPE_NOT_TEXT = FlowRule("INVALID_SCREEN_DATA", "Expected the property 'type' to be of type string.")
NO_ITEMS = FlowRule("INVALID_SCREEN_DATA", "Missing the schema for property 'items' in array.")
ITEMS_TYPE = FlowRule("INVALID_SCREEN_DATA", "Expected the property 'items' to be of type boolean or object.")
EXAMPLE_TYPE = FlowRule("INVALID_PROPERTY_TYPE", "Invalid data model schema. Expected property '__example__' to be of"
                        " type '{expected}' but found '{found}'.")
EXAMPLE_LACKS = FlowRule(
    "MISSING_REQUIRED_PROPERTY", "Invalid data model schema. Required property '{name}' is missing.")

TOO_MANY_SCREENS = FlowRule(
    "MAX_SCREENS_NUMBER", "Maximum number of screens allowed per Flow is {limit} but found {count}.")
TOO_MANY_ON_SCREEN = FlowRule("MAX_ALLOWED_COMPONENTS_PER_SCREEN", "Maximum number of components allowed per screen is"
                              " {limit} but found {count}.")
TOO_MANY_OF_TYPE = FlowRule("COMPONENT_TYPE_MAX_NUMBER_PER_SCREEN", "Maximum number of {component} allowed per screen is"
                            " {limit} but found {count}.")
BOTH_PICKERS = FlowRule("COMPONENT_TYPE_MAX_NUMBER_PER_SCREEN", "You can only have a maximum of 1 component of type"
                        " PhotoPicker or DocumentPicker per screen.")
TOO_MANY_IN_FLOW = FlowRule(
    "INVALID_PROPERTY_VALUE", "Maximum number of {component} allowed per Flow is {limit} but found {count}.")
TOO_MANY_PICTURES = FlowRule("INVALID_PROPERTY_VALUE", "Property 'images' should have at most '{limit}' items.")
INVALID_PICTURE = FlowRule("INVALID_PROPERTY_VALUE", "Image source is not in a valid base64 format.")
DUPLICATE_NAME = FlowRule("DUPLICATE_FORM_COMPONENT_NAMES", "Duplicate name found for Form components: '{name}'.")
DUPLICATE_SCREEN = FlowRule("DUPLICATE_SCREEN_IDS", "Duplicate screen id found: '{screen}'.")
RESERVED_SCREEN = FlowRule(
    "SCREEN_ID_IS_RESERVED_KEYWORD", "Screen id cannot be '{screen}' since it is a reserved keyword.")
NO_TERMINAL = FlowRule("MISSING_TERMINAL_SCREEN", "Terminal screen is required but not provided.")
NO_SUCCESS = FlowRule("INVALID_PROPERTY_VALUE", "At least one terminal screen must have property 'success' set as true.")
NO_FOOTER = FlowRule("MISSING_FOOTER_ON_TERMINAL_SCREEN", "Footer component is missing on terminal screen '{screen}'.",
                     accepted=((5, 0), (7, 3)))
TERMINAL_ACTION = FlowRule("INVALID_PROPERTY_VALUE", "Invalid value found for property 'name'. Expected {expected}.",
                           accepted=((0, 0), (7, 3)))
OUTSIDE_FORM = FlowRule(
    "COMPONENTS_OUTSIDE_FORM", "Component '{component}' is not allowed outside Form when Form component is present.")
NO_ELSE_FOOTER = FlowRule("MISSING_FOOTER_IN_IF_ELSE_BRANCHES", "Missing Footer inside one of the 'If' component"
                          " branches. Branch 'else' should exist and contain one Footer.")
ONE_BRANCH_FOOTER = FlowRule("MISSING_FOOTER_IN_IF_ELSE_BRANCHES", "Footer component must be present in all branches of"
                             " 'If' component if it exists in any one branch.")
NESTED_FOOTER = FlowRule("INVALID_PROPERTY_VALUE", "A Footer is allowed only in the first level of If, not in a nested"
                         " If.")
ONE_CASE_FOOTER = FlowRule("MISSING_FOOTER_IN_SWITCH_BRANCHES", "Footer component must be present in all switch cases if"
                           " it exists in one of the cases.")
EMPTY_THEN = FlowRule("INVALID_PROPERTY_VALUE", "Expected array to contain at least one component.")
EMPTY_CASES = FlowRule("INVALID_PROPERTY_VALUE", "The 'cases' property of a Switch component cannot be empty.")
TOO_DEEP_IF = FlowRule("MAXIMUM_IF_NESTING", "The 'If' component can only be nested up to {limit} levels deep.")
INVALID_CONDITION = FlowRule("INVALID_PROPERTY_VALUE", "{reason}")
CONDITION_TYPE = FlowRule("INVALID_PROPERTY_VALUE", "Expected single operand to be a boolean.")
CONDITION_LITERAL = FlowRule(
    "INVALID_PROPERTY_VALUE", "The only operand is a literal value. Expected single operand to be a boolean.")
CONDITION_DATA = FlowRule(
    "INVALID_PROPERTY_VALUE", "Missing dynamic data '{name}' in the data model for screen {screen}.")
PICKER_INITIAL = FlowRule("NATIVE_COMPONENT_IN_FORM_INIT_VALUES", "Property 'init-values'  should not contain value for"
                          " components: [{component}].")
INITIAL_UNUSED = FlowRule("INVALID_PROPERTY_VALUE", "The property '{name}' is declared but not used in the"
                          " init-values'.", accepted=((0, 0), (7, 0)))
INITIAL_TYPE = FlowRule("INVALID_PROPERTY_VALUE", "Expected property '{name}' to be of type '{expected}' but found"
                        " '{found}'.", accepted=((0, 0), (7, 0)))
MINIMUM_ABOVE_MAXIMUM = FlowRule(
    "MIN_VALUE_GREATER_THAN_MAX", "'{minimum}' cannot be greater than '{maximum}' for {component} '{name}'.")
DAYS_ORDER = FlowRule("INVALID_MIN_MAX_DAYS", MINIMUM_ABOVE_MAXIMUM.message)
DATE_ORDER = FlowRule("INVALID_DATE_RANGE", MINIMUM_ABOVE_MAXIMUM.message)
DATE_FORMAT = FlowRule("INVALID_DATE_RANGE", 'The date field must be in the format "YYYY-MM-DD".')
INITIAL_DATE_FORMAT = FlowRule("INVALID_DATE_SINGLE_INIT_VALUE_FORMAT", DATE_FORMAT.message)
DATE_OUTSIDE = FlowRule("INVALID_DATE_RANGE", "The value of property '{name}' of component '{component}' must be in the"
                        " range of [{minimum}, {maximum}].")
RANGE_ONLY = FlowRule("INVALID_PROPERTY_NAME_FOR_CONDITION", "Cannot set property '{name}' when 'mode' is not set to"
                      " 'range' for component 'CalendarPicker'.")
MODE_TYPE = FlowRule("INVALID_TYPE", "The value of property '{name}' of component 'CalendarPicker' must be of type"
                     " '{expected}'.")
NO_RANGE_END = FlowRule("MISSING_CALENDAR_PICKER_RANGE_MODE_PROP", "The property '{name}' of component 'CalendarPicker'"
                        " must be present when the mode is set to 'range'.")
RANGE_MEMBER = FlowRule("UNEXPECTED_CALENDAR_PICKER_RANGE_MODE_PROP", "The property '{name}' of component"
                        " 'CalendarPicker' only expects properties 'start-date' and 'end-date' when the mode is set to"
                        " 'range'.")
RICH_TEXT_ALONE = FlowRule("INVALID_RICHTEXT_PLACEMENT", "RichText cannot be used with other components on the same"
                           " screen. Please either remove RichText or ensure that it is the only component on the"
                           " screen.")
NOT_ALONE = FlowRule("INVALID_COMPONENT_PLACEMENT", "Only {limit} can be used per screen. Please remove other"
                     " components.")
NOT_ALONE_WITH_FOOTER = FlowRule(
    "INVALID_COMPONENT_PLACEMENT", "RichText can either be the only component on the screen or it can be paired"
    " exclusively with the  Footer component. Please remove all components other than  Footer from the same screen to use"
    " RichText.")
LIST_ACTION = FlowRule("MISSING_REQUIRED_PROPERTY", "Required property 'on-click-action' is missing.")
LIST_ACTIONS = FlowRule("DUPLICATE_PROPETY_FOR_CONDITION", "For the 'NavigationList' component, 'on-click-action' can"
                        " only be defined at either root level or within the 'list-items', but not both.")
LIST_END = FlowRule("DUPLICATE_PROPETY_FOR_CONDITION", "For the 'NavigationList' component, 'end' add-on should have at"
                    " least 1 and at most 2 of 'title', 'metadata' or 'description.'")
ONE_BADGE = FlowRule("MAX_ITEMS_REQUIRED", "Property 'list-items' should have at most '1' badge item.")
END_WITH_LARGE = FlowRule("INVALID_PROPERTY_VALUE_FOR_CONDITION", "Cannot set property 'media-size' to 'large' when"
                          " 'end' add-on is present for component 'NavigationList'.")
PATTERN_HELP = FlowRule("MISSING_REQUIRED_PROPERTY", "Required property 'helper-text' is missing.")
IMAGE_AND_COLOR = FlowRule("DATA_SOURCE_ITEMS_HAVE_BOTH_IMAGE_AND_COLOR", "Data source can only have either only image"
                           " attributes or only color attributes for all items for {component} '{name}'.")
UNKNOWN_SENSITIVE = FlowRule("INVALID_SENSITIVE_FIELD", "No component corresponding to the sensitive field '{name}' can"
                             " be found in screen '{screen}'.")
# fmt: on
