"""Data of a business that sign-up shows already filled in: a table of its fields, and their checks."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.forms import Form

PHONE_CATEGORIES: Final = (  # Source: ledger 1.3, `prefilled`
    "TRAVEL", "EVENT_PLAN", "ENTERTAIN", "BEAUTY", "APPAREL", "FINANCE", "AUTO", "PROF_SERVICES", "RESTAURANT", "EDU",
    "HEALTH", "GROCERY", "GOVT", "NONPROFIT", "RETAIL", "HOTEL", "OTHER",
)  # fmt: skip
_COUNTRIES: Final = (  # ISO 3166-1 alpha-2
    " AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY"
    " BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK"
    " FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR"
    " IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK"
    " ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM"
    " PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF"
    " TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW "
)
MAX_TEXT_CHARS: Final = 200
_EMAIL: Final = re.compile(r"[!-?A-~]+@[!-?A-~]+\.[!-?A-~]+")  # printable ASCII without a second @
_TIMEZONE: Final = re.compile(r"UTC[+-](0[0-9]|1[0-4]):[0-5][0-9]", re.ASCII)
_DIGITS: Final = re.compile(r"\+?[0-9]{1,15}", re.ASCII)
_CATEGORY_TEXT: Final = f"Invalid phone category.The list of supported categories are : [{', '.join(PHONE_CATEGORIES)}]"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _is_country(text: str) -> bool:
    return len(text) == 2 and f" {text} " in _COUNTRIES


def _limit_length(max_chars: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= max_chars


def _match(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_category(text: str) -> bool:
    return text in PHONE_CATEGORIES


class PrefilledField(NamedTuple):
    """One field.

    Attributes:
        meaning: one sentence.
        example: a value.
        is_valid: True for a text that may be stored.
        accepted: what it accepts, for the explanation.
        text: the documented text of its error; empty: none is documented.
    """

    name: str
    meaning: str
    example: str
    is_valid: Callable[[str], bool]
    accepted: str
    text: str = ""


_SHORT_TEXT: Final = f"at most {MAX_TEXT_CHARS} characters"
PREFILLED_FIELDS: Final = (  # Source: ledger 1.3, `prefilled`
    PrefilledField(
        "businessName",
        "The name of the business, fewer than 100 characters.",
        "Acme Ltd",
        _limit_length(99),
        "fewer than 100 characters",
        "Business name must be less than 100 characters",
    ),
    PrefilledField(
        "email",
        "The e-mail address of the business.",
        "ops@shop.example",
        _match(_EMAIL),
        "an e-mail address",
        "Invalid Email address",
    ),
    PrefilledField(
        "website",
        "The website of the business, http or https.",
        "https://shop.example",
        _is_url,
        "an http or https URL",
        "Invalid website url",
    ),
    PrefilledField(
        "businessPhoneCode",
        "The code of the country of the business's number; together with the number.",
        "1",
        _match(_DIGITS),
        "the code of a country",
        "",
    ),
    PrefilledField(
        "businessPhoneNumber",
        "The number of the business without that code.",
        "5550007777",
        _match(_DIGITS),
        "a number without its code",
        "",
    ),
    PrefilledField(
        "streetAddress1", "The first line of the address.", "1 Main Street", _limit_length(MAX_TEXT_CHARS), _SHORT_TEXT
    ),
    PrefilledField("streetAddress2", "The second line of the address.", "", _limit_length(MAX_TEXT_CHARS), _SHORT_TEXT),
    PrefilledField("city", "The city.", "Springfield", _limit_length(MAX_TEXT_CHARS), _SHORT_TEXT),
    PrefilledField("state", "The state.", "IL", _limit_length(MAX_TEXT_CHARS), _SHORT_TEXT),
    PrefilledField("zipPostal", "The postal code.", "62701", _limit_length(MAX_TEXT_CHARS), _SHORT_TEXT),
    PrefilledField(
        "country",
        "The country, as a code of ISO 3166-1 alpha-2.",
        "US",
        _is_country,
        "a code of ISO 3166-1 alpha-2",
        "Invalid Country",
    ),
    PrefilledField(
        "timezone",
        "The time zone, as an offset such as UTC+05:30.",
        "UTC-06:00",
        _match(_TIMEZONE),
        "an offset such as UTC+05:30",
        "",
    ),
    PrefilledField(
        "phoneDisplayName", "The name that recipients are to see.", "Acme", _limit_length(MAX_TEXT_CHARS), _SHORT_TEXT
    ),
    PrefilledField(
        "phoneCategory",
        "The kind of business: one of 17, such as RETAIL.",
        "RETAIL",
        _is_category,
        "one of the documented ones",
        _CATEGORY_TEXT,
    ),
    PrefilledField(
        "phoneDescription",
        "A description of at most 256 characters.",
        "Shoes and more",
        _limit_length(256),
        "at most 256 characters",
        "Invalid phone description",
    ),
)
FIELD_NAMES: Final = tuple(field.name for field in PREFILLED_FIELDS)


def read_prefilled(form: Form, stored: Mapping[str, str]) -> dict[str, str]:
    """Return the stored fields, changed by a form; an empty field is removed.

    Raises:
        ApiError: a field is invalid, or only one of the two about the phone number is there.
    """
    fields = dict(stored)
    for field in PREFILLED_FIELDS:
        value = form.text(field.name)
        if value is None:
            continue
        value = value.strip()
        if not value:
            fields.pop(field.name, None)
            continue
        if not field.is_valid(value):
            explanation = f"{field.name} must be {field.accepted}."
            raise ApiError(ErrorCode.INVALID_PREFILLED, explanation, field=field.name, text=field.text)
        fields[field.name] = value
    if ("businessPhoneCode" in fields) != ("businessPhoneNumber" in fields):
        raise ApiError(
            ErrorCode.INVALID_PREFILLED,
            "businessPhoneCode and businessPhoneNumber must be given together.",
            text="Business phone code/number is empty",
        )
    return fields


def prefilled_object(app: App) -> dict[str, Any]:
    """Return every field, empty where nothing is stored. Source: ledger 1.3, `prefilled`."""
    stored = app.preferences.prefilled
    return {"status": "success", "appId": app.id, **{name: stored.get(name, "") for name in FIELD_NAMES}}
