"""Apps in responses, and the data that sign-up shows already filled in."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import asdict

from waypost.domain.app import App, OnboardingStep
from waypost.domain.callbacks import read_modes
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.partner import Partner
from waypost.domain.phone_number import country_and_national, read_phone_number, region_of
from waypost.wire.forms import Form

MAX_APP_NAME_CHARS: Final = 150
MIN_FEE_CAP: Final = 50  # Source: ledger 1.9, `PUT capping`
MAX_FEE_CAP: Final = 750
MAX_EMAIL_CHARS: Final = 254
_EMAIL: Final = re.compile(r"[!-?A-~]+@[!-?A-~]+")  # printable ASCII without a second @
_TYPE: Final = "apicallbackpost"
_VERSION: Final = 2


def read_callback_modes(form: Form) -> tuple[str, ...]:
    """Return the modes of the older callback endpoints: a comma-separated list, which may be repeated.

    Raises:
        ApiError: a mode is not in the table.
    """
    return read_modes(form.all_values("modes", "modes[]"))


def read_contact(form: Form) -> tuple[str, str, str]:
    """Return e-mail address, name and phone number of a contact.

    Raises:
        ApiError: one is missing or invalid; with the documented text.
    """
    email = (form.text("contactEmail") or "").strip()
    local, _, host = email.rpartition("@")
    if not (local and host and len(email) <= MAX_EMAIL_CHARS) or not _EMAIL.fullmatch(email):
        raise _invalid_details("contactEmail must be an e-mail address.")
    name = (form.text("contactName") or "").strip()
    if not 1 <= len(name) <= MAX_APP_NAME_CHARS:
        raise _invalid_details(f"contactName must have 1 to {MAX_APP_NAME_CHARS} characters.")
    number = read_phone_number(form.text("contactNumber") or "")
    if number is None:
        raise _invalid_details("contactNumber must be a phone number of 8 to 15 digits.")
    return email, name, number


def _invalid_details(explanation: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_DETAILS, explanation)


class LinkedApp(Struct, rename="camel"):
    """An app that is linked to its partner, as all are."""

    id: str
    name: str
    phone: str
    partner_id: int
    live: bool
    stopped: bool
    healthy: bool
    wallet_id: str
    created_on: int
    modified_on: int


class PartnerApp(Struct, rename="camel"):
    """An app in the list of all."""

    id: str
    name: str
    phone: str
    customer_id: str
    partner_id: int
    live: bool
    stopped: bool
    healthy: bool
    wallet_id: str
    cap: int
    created_on: int
    modified_on: int
    partner_created: bool
    cxp_enabled: bool
    partner_usage: bool


class AppLinkedByToken(PartnerApp):
    """An app that is linked by a token of it."""

    email: str
    preferred_timezone: str
    solution_id: str
    storage_region: str
    currency: str
    customer_org_id: str
    source: Literal["SS"]
    name_space: str


AppStruct = TypeVar("AppStruct", bound=Struct)


def _app_struct(kind: type[AppStruct], app: App, **others: Any) -> AppStruct:
    """Return an app as a struct: its members that others have too, and those given."""
    known = {
        "id": app.id,
        "name": app.name,
        "phone": app.phone_number,
        "type": _TYPE,
        "version": _VERSION,
        "customer_id": str(app.partner_id),
        "partner_id": app.partner_id,
        "wallet_id": str(app.partner_id),
        "cap": app.preferences.cap,
        "storage_region": app.preferences.storage_region,
        "live": app.live,
        "healthy": app.live and bool(app.phone_number_id),
        "stopped": False,
        "created_on": app.created_on_ms,
        "modified_on": app.modified_on_ms,
    }
    return kind(**{name: known[name] for name in kind.__struct_fields__ if name in known}, **others)


def partner_app(app: App) -> PartnerApp:
    """Return an app for the list of a partner's apps. Source: facts 2, `partnerApps`; ledger 1.2, C10."""
    return _app_struct(PartnerApp, app, partner_created=False, cxp_enabled=False, partner_usage=True)


def linked_app(app: App) -> LinkedApp:
    """Return an app for the response to linking it. Source: facts 2, `appLink`."""
    return _app_struct(LinkedApp, app)


def app_linked_by_token(app: App, partner: Partner, namespace: str) -> AppLinkedByToken:
    """Return an app for the response to linking it by a token. Source: ledger 1.2, `auth/appLink`."""
    return _app_struct(
        AppLinkedByToken,
        app,
        partner_created=False,
        cxp_enabled=False,
        partner_usage=True,
        email=partner.email,
        preferred_timezone="UTC",
        solution_id="",
        currency="USD",
        customer_org_id=str(app.partner_id),
        source="SS",
        name_space=namespace,
    )


def app_linked_by_linking_token(app: App, customer_id: str) -> dict[str, Any]:
    """Return the response to linking an app by a linking token. Source: ledger 1.11."""
    return {
        "status": "success",
        "linked": True,
        "appId": app.id,
        "appName": app.name,
        "customerId": customer_id,
        "partnerId": app.partner_id,
        "tokenStatus": "ACTIVE",
    }


class ListedApp(Struct, rename="camel"):
    """An app that a search has found."""

    id: str
    name: str
    type: str
    live: bool
    phone: str
    stopped: bool
    storage_region: str
    ui_form_stage: str
    pipeline_stage: str
    creation_stage: str
    whatsapp_verification_status: str
    version: int
    products: list[str]
    created_on: int
    modified_on: int


class AppDetails(Struct, rename="camel"):
    """All details of an app."""

    id: str
    name: str
    phone: str
    type: str
    live: bool
    live_ts: int
    stopped: bool
    billing_type: str
    callback_url: str
    disable_optin_pref_url: bool
    embed_allowed: bool
    federated: bool
    language_code: str
    storage_region: str
    template_messaging: bool
    version: int
    created_on: int
    modified_on: int


class ChangedApp(AppDetails):
    """All details of a changed app."""

    customer_id: str
    customer_type: str


class OnboardingState(Struct, rename="camel"):
    """The stages of the onboarding of an app's number, in the words that clients poll for."""

    country_code: str
    created_on: int
    creation_stage: str
    dial_code: str
    embed_stage: str
    id: str
    modified_on: int
    pipe_line_stage: str
    ui_form_stage: str
    whatsapp_verification_status: str


class _Stages(NamedTuple):
    creation_stage: str
    embed_stage: str
    pipe_line_stage: str
    ui_form_stage: str
    whatsapp_verification_status: str


_NOT_BEGUN: Final = _Stages("INITIAL", "EMBED_PHONE_SELECTION", "NONE", "GO_LIVE_FLOW_SELECTED", "WABA_APPROVED")
_STAGES: Final = {  # Source: ledger 1.11; the order is decision 0125's
    OnboardingStep.CHECK_NUMBER: _Stages(
        "IN_PROGRESS", "EMBED_PHONE_SELECTION", "GET_CERTIFICATE", "GO_LIVE_FLOW_SELECTED", "WABA_APPROVED"
    ),
    OnboardingStep.SUBSCRIBE: _Stages(
        "IN_PROGRESS", "EMBED_STARTED", "GET_CERTIFICATE", "GO_LIVE_FLOW_SELECTED", "WABA_APPROVED"
    ),
    OnboardingStep.REGISTER: _Stages(
        "DOCKER_PROVISIONING", "EMBED_STARTED", "GET_CERTIFICATE", "COMPLETE_VERIFICATION", "WHATSAPP_VERIFICATION_DONE"
    ),
}
_FAILED: Final = _Stages("ERROR", "EMBED_PENDING", "CREATE_DOCKER", "GET_WHATSAPP_APPROVAL", "PN_DN_APPROVED")
_DONE: Final = _Stages(
    "WHATSAPP_PROVISIONING_DONE", "EMBED_STARTED", "FINALIZE", "COMPLETE_VERIFICATION", "WHATSAPP_VERIFICATION_DONE"
)


def _stages_of(app: App) -> _Stages:
    progress = app.preferences.onboarding
    if app.live:
        return _DONE
    if progress is None:
        return _NOT_BEGUN
    return _FAILED if progress.has_failed else _STAGES[progress.step]


def onboarding_state(app: App) -> OnboardingState:
    """Return the stages of an app's onboarding as they are now. Source: ledger 1.11; decision 0125."""
    country, national = country_and_national(app.phone_number)
    return OnboardingState(
        country_code=country,
        created_on=app.created_on_ms,
        dial_code=national,
        id=app.id,
        modified_on=app.modified_on_ms,
        **_stages_of(app)._asdict(),
    )


_MIGRATION_NAMES: Final = {  # of members whose names are not those of the fields in camel case
    "last_pndn_check_timestamp": "lastPNDNCheckTimestamp",
    "last_waba_check_timestamp": "lastWABACheckTimestamp",
    "provided_access": "providedAccessToGupshup",
}


def _rename_migrated(name: str) -> str:
    first, *others = name.split("_")
    return _MIGRATION_NAMES.get(name) or first + "".join(word.capitalize() for word in others)


class MigratedNumber(OnboardingState, rename=_rename_migrated):
    """A number that comes from elsewhere, and the stages of its onboarding; a time is 0 where it is not known."""

    business_id: str
    display_name: str
    embed_live_check_timestamp: int
    fb_business_id: str
    fb_verification_bypassed: bool
    formatted_phone_number: str
    go_live_process_request_email_sent: bool
    last_pndn_check_timestamp: int
    last_waba_check_timestamp: int
    migration_status: str
    migration_time: int
    normalized_phone_number: str
    pndn_approval_timestamp: int
    preferred_currency: str
    preferred_locale: str
    preferred_timezone: str
    provided_access: bool
    region_code: str
    stage_retries: int
    waba_approval_timestamp: int


def migrated_number(app: App, currency: str) -> MigratedNumber:
    """Return a number that comes from elsewhere. Source: ledger 1.3, `onboarding/phoneMigration`; decision 0125."""
    state, progress, preferences = onboarding_state(app), app.preferences.onboarding, app.preferences
    checked_ms = app.modified_on_ms if progress is not None or app.live else 0
    live_ms = (preferences.live_since_ms or app.created_on_ms) if app.live else 0
    return MigratedNumber(
        **asdict(state),
        business_id=app.business_account_id,
        display_name=preferences.prefilled.get("phoneDisplayName", ""),
        embed_live_check_timestamp=checked_ms,
        fb_business_id="",
        fb_verification_bypassed=False,
        formatted_phone_number=f"+{state.country_code} {state.dial_code}" if app.phone_number else "",
        go_live_process_request_email_sent=False,
        last_pndn_check_timestamp=checked_ms,
        last_waba_check_timestamp=checked_ms,
        migration_status=preferences.migration_status,
        migration_time=preferences.migration_ms,
        normalized_phone_number=app.phone_number,
        pndn_approval_timestamp=live_ms,
        preferred_currency=currency,
        preferred_locale=preferences.language_code,
        preferred_timezone=preferences.prefilled.get("timezone", "UTC"),
        provided_access=bool(app.phone_number_id),
        region_code=region_of(app.phone_number),
        stage_retries=0 if progress is None else progress.failures,
        waba_approval_timestamp=live_ms,
    )


def listed_app(app: App) -> ListedApp:
    """Return an app for the search list. Source: facts 2, `app/list`; ledger 1.11."""
    state = onboarding_state(app)
    return _app_struct(
        ListedApp,
        app,
        ui_form_stage=state.ui_form_stage,
        pipeline_stage=state.pipe_line_stage,
        creation_stage=state.creation_stage,
        whatsapp_verification_status=state.whatsapp_verification_status,
        products=[],
    )


def app_details(app: App, partner: Partner) -> AppDetails:
    """Return all details of an app. Source: facts 2, `details`."""
    return _app_struct(
        AppDetails,
        app,
        live_ts=(app.preferences.live_since_ms or app.created_on_ms) if app.live else 0,
        billing_type=partner.billing_type,
        callback_url=app.preferences.callback_url,
        disable_optin_pref_url=app.preferences.disable_optin_pref_url,
        embed_allowed=False,
        federated=False,
        language_code=app.preferences.language_code,
        template_messaging=app.preferences.template_messaging,
    )


def changed_app(app: App, partner: Partner) -> ChangedApp:
    """Return an app for the response to changing it. Source: facts 2, `PUT /partner/app/{appId}`; ledger 1.2, C7."""
    return ChangedApp(**asdict(app_details(app, partner)), customer_id=str(app.partner_id), customer_type="PARTNER")


_CATEGORIES: Final = (  # Source: ledger 1.3, `prefilled`
    "TRAVEL EVENT_PLAN ENTERTAIN BEAUTY APPAREL FINANCE AUTO PROF_SERVICES RESTAURANT EDU HEALTH GROCERY GOVT "
    "NONPROFIT RETAIL HOTEL OTHER"
)
PHONE_CATEGORIES: Final = tuple(_CATEGORIES.split())
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
_EMAIL_WITH_DOMAIN: Final = re.compile(r"[!-?A-~]+@[!-?A-~]+\.[!-?A-~]+")  # printable ASCII without a second @
_TIMEZONE: Final = re.compile(r"UTC[+-](0[0-9]|1[0-4]):[0-5][0-9]", re.ASCII)
_DIGITS: Final = re.compile(r"\+?[0-9]{1,15}", re.ASCII)
_CATEGORY_TEXT: Final = f"Invalid phone category.The list of supported categories are : [{', '.join(PHONE_CATEGORIES)}]"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _limit_length(max_chars: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= max_chars


def _match(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


class PrefilledField(NamedTuple):
    """One field."""

    name: str
    meaning: str  # one sentence
    example: str  # a value
    is_valid: Callable[[str], bool]  # True for a text that may be stored
    accepted: str  # what it accepts, for the explanation
    text: str = ""  # the documented text of its error; empty: none is documented


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
        _match(_EMAIL_WITH_DOMAIN),
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
        _COUNTRIES.split().__contains__,
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
        PHONE_CATEGORIES.__contains__,
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
