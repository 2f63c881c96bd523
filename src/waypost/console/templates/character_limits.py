"""Maximum lengths of the editor's fields, for its character counters."""

from typing import Final

from waypost.domain.templates.field_rules import MaxLengthCheck
from waypost.domain.templates.rules import SPEC_RULES

CONDITIONAL_MAX_CHARS: Final = {  # limits that depend on more than the field. Source: domain/templates/rules.py; a test compares each number
    # counter, maximum, its rule in domain/templates/rules.py
    "content of an offer": (600, "lto-content"),
    "button.text": (25, "label-length"),
    "button.autofill_text": (25, "label-length"),
    "button.url": (2000, "url-usable"),
    "button.phone_number": (20, "phone-usable"),
    "button.code": (15, "copy-code-length"),
    "card.body": (160, "card-body-length"),
}
MAX_CHARS_BY_FIELD: Final = {
    rule.field: rule.check.max_chars for rule in SPEC_RULES if isinstance(rule.check, MaxLengthCheck)
} | {name: max_chars for name, (max_chars, _) in CONDITIONAL_MAX_CHARS.items()}
