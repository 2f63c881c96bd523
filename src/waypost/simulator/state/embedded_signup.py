"""Facts of the window of embedded signup: its versions, features, products, screens, errors and events.

Source: facts 14.1, 14.2, 14.3, 14.7.
"""

from typing import Any, Final, Literal, NamedTuple

ScreenName = Literal["sign_in", "terms", "business", "account", "profile", "number", "code", "permissions", "done"]
NumberChoice = Literal["new", "existing", "display_name_only", "business_app", "preverified"]
"""What a business may choose: a number of its own, one of the account, one that the operator gives it together with a
display name (555), the one that it uses in the app on a phone, or one of the partner's that the page offers."""


class Screen(NamedTuple):
    """One screen of the window."""

    current_step: str  # of the message about a window that was closed here; empty: nothing is sent
    inputs: str  # what its user enters


SCREENS: Final[dict[ScreenName, Screen]] = {  # in the order in which they are shown
    "sign_in": Screen("", "the person who signs in"),
    "terms": Screen("", "the terms are accepted"),
    "business": Screen(
        "BUSINESS_ACCOUNT_SELECTION", "a business portfolio, or name, mail, website, country of a new one"
    ),
    "account": Screen("WABA_PHONE_PROFILE_PICKER", "an account, or the name of a new one; the kind of number"),
    "profile": Screen("WHATSAPP_BUSINESS_PROFILE_SETUP", "the name of the new account (v2, v3)"),
    "number": Screen("PHONE_NUMBER_SETUP", "the number, its display name, category and time zone"),
    "code": Screen("PHONE_NUMBER_VERIFICATION", "the code from a text message, a call, or the app"),
    "permissions": Screen("PERMISSIONS", "the permissions are confirmed"),
    "done": Screen("", "the window is closed"),
}


SESSION_OPENED: Final = "open"
"""The name by which faults of a whole session are armed, beside the names of the screens."""


class WindowVersion(NamedTuple):
    """One version of the window."""

    has_profile_screen: bool  # a new account is named on a screen of its own
    sends_message: bool  # also to a page that did not ask for it by `sessionInfoVersion`
    reads_products: bool  # the products of the configuration decide what it asks for
    shares_several: bool  # several accounts of the business may be chosen at once
    is_deprecated: bool  # since `DEPRECATED_MS` it ignores features, without an error


_OLD: Final = WindowVersion(
    has_profile_screen=True, sends_message=False, reads_products=False, shares_several=False, is_deprecated=True
)
_CURRENT: Final = WindowVersion(
    has_profile_screen=False, sends_message=True, reads_products=True, shares_several=True, is_deprecated=False
)
VERSIONS: Final = {"v2": _OLD, "v3": _OLD, "v4": _CURRENT, "v4-public-preview": _CURRENT}
DEPRECATED_MS: Final = 1_792_022_400_000  # 15 October 2026, 00:00 UTC
SESSION_INFO_VERSION: Final = 3


class SignupFeature(NamedTuple):
    """One feature of the window: it changes what is asked for, and the event at the end."""

    event: str
    versions: tuple[str, ...]  # that know it; others show the ordinary window


_ALL: Final = tuple(VERSIONS)
BUSINESS_APP: Final = "whatsapp_business_app_onboarding"
ONLY_ACCOUNT: Final = "only_waba_sharing"
ONLY_ACCESS: Final = "app_only_install"
MARKETING_MESSAGES: Final = "marketing_messages_lite"
ON_BEHALF: Final = "on_behalf_of"
FEATURES: Final = {
    # name
    "": SignupFeature("FINISH", _ALL),
    ONLY_ACCOUNT: SignupFeature("FINISH_ONLY_WABA", ("v2", "v3")),
    MARKETING_MESSAGES: SignupFeature("FINISH", ("v2", "v3")),
    BUSINESS_APP: SignupFeature("FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING", _ALL),
    ONLY_ACCESS: SignupFeature("FINISH_GRANT_ONLY_API_ACCESS", ("v3", "v4", "v4-public-preview")),
}
FEATURE_ALIASES: Final = {"coex": BUSINESS_APP}  # of the operator's blog
OBO_EVENT: Final = "FINISH_OBO_MIGRATION"
"""The event if the account was one that another business had on behalf of its owner."""
FINISH_EVENTS: Final = (*dict.fromkeys(feature.event for feature in FEATURES.values()), OBO_EVENT)

MANAGEMENT_SCOPE: Final = "whatsapp_business_management"
MESSAGING_SCOPE: Final = "whatsapp_business_messaging"
EVENTS_SCOPE: Final = "whatsapp_business_manage_events"
_BOTH: Final = (MANAGEMENT_SCOPE, MESSAGING_SCOPE)


class SignupProduct(NamedTuple):
    """One product of a login configuration."""

    scopes: tuple[str, ...]
    assets: tuple[str, ...] = ()  # the members of the message that name what was chosen besides the account
    feature: str = ""


PRODUCTS: Final = {  # Source: facts 14.1
    "cloud_api": SignupProduct(_BOTH),
    "marketing_messages": SignupProduct(_BOTH, feature=MARKETING_MESSAGES),
    "click_to_whatsapp": SignupProduct(
        (*_BOTH, "ads_read", "ads_management", "pages_manage_ads", "pages_read_engagement", "pages_show_list"),
        assets=("ad_account_ids", "page_ids", "instagram_account_ids", "catalog_ids"),
    ),
    "conversions_api": SignupProduct((*_BOTH, EVENTS_SCOPE), assets=("dataset_ids", "page_ids", "ad_account_ids")),
    "business_app_onboarding": SignupProduct(_BOTH, feature=BUSINESS_APP),
}

_EVERY: Final = tuple[ScreenName, ...](name for name in SCREENS if name != "done")

ASSET_SCOPES: Final = {  # what a scope of `debug_token` is granted for, where it is not for accounts; decision 0123
    "ads_read": "ad_account_ids",
    "ads_management": "ad_account_ids",
    "pages_manage_ads": "page_ids",
    "pages_read_engagement": "page_ids",
    "pages_show_list": "page_ids",
}


class WindowErrorRow(NamedTuple):
    """One error that the window shows: where it can be shown, and its text."""

    screens: tuple[ScreenName, ...]
    text: str


def _rows(screens: tuple[ScreenName, ...], texts: dict[int, str]) -> dict[int, WindowErrorRow]:
    return {code: WindowErrorRow(screens, text) for code, text in texts.items()}


WINDOW_ERRORS: Final[dict[int, WindowErrorRow]] = {  # Source: facts 14.7; the texts are ours
    **_rows(
        ("sign_in",),
        {
            2859009: "The sign-in could not be confirmed.",
            2859043: "The person must confirm the identity first.",
            2136001: "The person may not use this app.",
            4612001: "The person must turn on two-factor authentication.",
        },
    ),
    **_rows(
        ("business",),
        {
            1690114: "The person has as many businesses as one may have.",
            1752089: "Only one business can be created at a time.",
            1690090: "The name of the business is invalid.",
            1690062: "The name is in use.",
            1690089: "A system user of this name exists already.",
            3771014: "The link of the website is invalid.",
            1690181: "The page cannot be claimed by the business.",
            1752069: "The page belongs to another business.",
        },
    ),
    **_rows(("business", "number"), {1690091: "The name is invalid."}),
    **_rows(("business", "account"), {2388098: "A business that is not verified can have no further account."}),
    **_rows(("account", "profile"), {2593010: "The name of the account has more than 255 characters."}),
    **_rows(
        ("account",),
        {
            2494067: "The business has as many accounts as one may have.",
            2655049: "The account is shared with a partner already.",
            2494028: "The account is shared with this partner already.",
            2494029: "The account cannot be shared.",
            2494120: "The account cannot be shared with this partner.",
            2593072: "The account is unknown.",
            2494091: "The partner is not verified.",
            2494119: "The account was chosen twice.",
            2494030: "A verification that a partner leads is in progress.",
            2494143: "Another partner leads the verification.",
            2655076: "The business may have no further number from the operator.",
            2655005: "The operator has no number to give now.",
        },
    ),
    **_rows(
        ("number",),
        {
            3441051: "The phone number is invalid.",
            2655011: "The phone number is not linked to the account.",
            2388002: "The phone number cannot be added.",
            2388009: "The verified name cannot be edited.",
            2388010: "The verified name cannot be edited now.",
            3441030: "The phone number is registered already.",
            3441041: "The phone number belongs to another business.",
            3441045: "The phone number is not eligible yet; use the app for longer.",
            2655095: "The phone number is not registered with the WhatsApp Business app.",
            2655048: "The phone number is not used in the WhatsApp Business app.",
            3441042: "The region of the phone number is not supported.",
            2655093: "The phone number is shared with a partner already.",
            2655082: "The phone number is linked to a page.",
            3441049: "Disconnect the phone number in the app, and wait 15 minutes.",
            2655094: "The phone number was disconnected in the app; wait 15 minutes.",
            3441047: "The account is one for marketing messages.",
            4563015: "The app on the phone is too old.",
        },
    ),
    **_rows(
        ("code",),
        {
            2593037: "The code could not be requested.",
            2593039: "The code could not be verified.",
            2494158: "The code was requested too often.",
            2388091: "The code could not be sent.",
            2388093: "The code is wrong.",
        },
    ),
    **_rows(
        ("permissions",),
        {
            1349246: "The permissions could not be given.",
            2655081: "The ad account cannot be used.",
            2655055: "The ad account cannot be linked.",
            1752004: "The ad account cannot be created.",
            1752140: "The business may have no further ad account.",
            2455008: "The ad account is unknown.",
            2494149: "The ad account cannot be shared.",
            2446325: "The ad account needs a payment method.",
            1690214: "The ad account is disabled.",
        },
    ),
    **_rows(
        _EVERY,
        {
            2655091: "The captcha was not solved.",
            3441033: "Too many customers were onboarded; try again later.",
            3441046: "There were too many tries; try again later.",
            1390006: "This was done too often.",
            1675004: "The limit of requests is reached.",
            1390008: "This is blocked for now, because it was done too often.",
            1675030: "The request could not be completed.",
            1675012: "The request failed.",
            2593030: "The signup could not be completed.",
            1357053: "The session could not be read.",
            1752224: "The business could not be read.",
            1752206: "The business could not be changed.",
            3441003: "The phone number could not be changed.",
            2593035: "The account could not be created.",
            4056009: "The action failed.",
            1690061: "The system user could not be created.",
            2655069: "The terms could not be accepted.",
            2494102: "The account could not be shared.",
            2655089: "The business is restricted.",
            3441040: "The phone number is restricted.",
            2388107: "The account is restricted.",
            2859015: "The person is restricted.",
            1784028: "The business may not use this product.",
            1404163: "The person may not do this now.",
        },
    ),
}

# Source: facts 14.8; those of accounts and portfolios are decided in decision 0123.
MAX_PORTFOLIOS: Final = 2  # that a person creates
MAX_ACCOUNTS: Final = {False: 2, True: 20}  # of a portfolio, by whether it is verified
MAX_NUMBERS: Final = {False: 2, True: 20}
MAX_VIRTUAL_NUMBERS: Final = 2
MAX_CUSTOMERS: Final = {False: 10, True: 200}  # in 7 days, by whether the partner is verified
MAX_ACCOUNT_NAME_CHARS: Final = 255
RESEND_AFTER_MS: Final = 60_000


OTHER_ORIGIN: Final = "https://web.facebook.com"
"""The second origin of messages, beside `https://www.facebook.com`. Source: facts 14.9."""


class SignupBreak(NamedTuple):
    """One thing that goes wrong with a signup, though its window was used as it should be."""

    effect: str
    error: tuple[ScreenName, int] | None = None  # the screen of the window that fails, and its code


BREAKS: Final = {  # Source: facts 14.9
    "scopes_since_june_2026": SignupBreak(
        f"The token carries `{EVENTS_SCOPE}` in place of `{MANAGEMENT_SCOPE}`, as since 10 June 2026."
    ),
    "scopes_before_june_2026": SignupBreak(
        f"The token carries `{MANAGEMENT_SCOPE}` and no `{EVENTS_SCOPE}`, as before 10 June 2026."
    ),
    "number_registered": SignupBreak("The window says that the number is registered already.", ("number", 3441030)),
    "business_unverified": SignupBreak(
        "The window says that an unverified business can have no further account.", ("business", 2388098)
    ),
    "name_declined": SignupBreak("The number's display name is declined."),
    "pin_forgotten": SignupBreak("The number has a PIN that nobody knows: `register` fails with 133005."),
    "code_expired": SignupBreak("The code has expired when the page gets it."),
    "code_used": SignupBreak("Somebody has exchanged the code before the page gets it."),
    "field_not_subscribed": SignupBreak("The app's webhook loses the field `messages` at the end of the signup."),
    "secret_rotated": SignupBreak("The app's secret is another at the end of the signup."),
    "callback_first": SignupBreak("The page's callback is called before it gets the message of the session."),
    "other_origin": SignupBreak(f"The message of the session comes from `{OTHER_ORIGIN}`."),
    "message_never": SignupBreak("The page never gets the message of the session."),
    "message_late": SignupBreak("The page gets the message of the session after 40 s."),
    "callback_never": SignupBreak("The page's callback is never called."),
    "callback_late": SignupBreak("The page's callback is called after 40 s, when the code has expired."),
}
LATE_MS: Final = 40_000
CODE_MS: Final = 30_000
"""How long a code can be exchanged. Source: facts 14.8."""


def list_choices() -> dict[str, Any]:
    """Return the tables for a client that draws the window or a form for it."""
    return {
        "versions": {name: version._asdict() for name, version in VERSIONS.items()},
        "features": {name: feature._asdict() for name, feature in FEATURES.items() if name},
        "products": {name: product._asdict() for name, product in PRODUCTS.items()},
        "screens": {
            name: {**screen._asdict(), "codes": [code for code, row in WINDOW_ERRORS.items() if name in row.screens]}
            for name, screen in SCREENS.items()
        },
        "errors": {str(code): row.text for code, row in WINDOW_ERRORS.items()},
        "breaks": {name: row.effect for name, row in BREAKS.items()},
    }
