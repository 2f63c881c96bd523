"""Apps and their users in the formats of the partner API, and the forms that change them."""

import re
from dataclasses import dataclass
from typing import Any, Final

from waypost.domain.app import App
from waypost.domain.callbacks import read_modes
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.partner import Partner
from waypost.domain.phone_number import read_phone_number
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


def partner_app(app: App) -> dict[str, Any]:
    """Return an app for the list of a partner's apps. Source: facts 2, `partnerApps`; ledger 1.2, C10."""
    return {
        "id": app.id,
        "name": app.name,
        "phone": app.phone_number,
        "customerId": str(app.partner_id),
        "partnerId": app.partner_id,
        "live": app.live,
        "stopped": False,
        "healthy": app.live and bool(app.phone_number_id),
        "walletId": str(app.partner_id),
        "cap": app.preferences.cap,
        "createdOn": app.created_on_ms,
        "modifiedOn": app.modified_on_ms,
        "partnerCreated": False,
        "cxpEnabled": False,
        "partnerUsage": True,
    }


_NOT_LINKED_MEMBERS: Final = ("customerId", "cap", "partnerCreated", "cxpEnabled", "partnerUsage")


def linked_app(app: App) -> dict[str, Any]:
    """Return an app for the response to linking it. Source: facts 2, `appLink`."""
    members = partner_app(app)
    return {name: value for name, value in members.items() if name not in _NOT_LINKED_MEMBERS}


def app_linked_by_token(app: App, partner: Partner, namespace: str) -> dict[str, Any]:
    """Return an app for the response to linking it by a token. Source: ledger 1.2, `auth/appLink`."""
    return partner_app(app) | {
        "email": partner.email,
        "preferredTimezone": "UTC",
        "solutionId": "",
        "storageRegion": app.preferences.storage_region,
        "currency": "USD",
        "customerOrgId": str(app.partner_id),
        "source": "SS",
        "nameSpace": namespace,
    }


def app_linked_by_linking_token(app: App) -> dict[str, Any]:
    """Return the response to linking an app by a linking token. Source: ledger 1.11."""
    return {
        "status": "success",
        "linked": True,
        "appId": app.id,
        "appName": app.name,
        "customerId": str(app.partner_id),
        "partnerId": app.partner_id,
        "tokenStatus": "ACTIVE",
    }


@dataclass(frozen=True, slots=True)
class OnboardingStages:
    """The stages of the onboarding of an app's number, in the words that clients poll for."""

    creation: str
    embed: str
    pipeline: str
    form: str
    verification: str


# fmt: off
_LIVE: Final = OnboardingStages(  # Source: ledger 1.11
    creation="WHATSAPP_PROVISIONING_DONE", embed="EMBED_STARTED", pipeline="FINALIZE", form="COMPLETE_VERIFICATION",
    verification="WHATSAPP_VERIFICATION_DONE",
)
_NOT_LIVE: Final = OnboardingStages(  # Source: ledger 1.11: the administrator has yet to make it live
    creation="INITIAL", embed="EMBED_PHONE_SELECTION", pipeline="NONE", form="GO_LIVE_FLOW_SELECTED",
    verification="WABA_APPROVED",
)
# fmt: on


def onboarding_stages(app: App) -> OnboardingStages:
    """Return the stages of an app: it is live, or waits for the administrator; nothing is in between here."""
    return _LIVE if app.live else _NOT_LIVE


def listed_app(app: App) -> dict[str, Any]:
    """Return an app for the search list. Source: facts 2, `app/list`; ledger 1.11."""
    stages = onboarding_stages(app)
    return {
        "id": app.id,
        "name": app.name,
        "type": _TYPE,
        "live": app.live,
        "phone": app.phone_number,
        "stopped": False,
        "storageRegion": app.preferences.storage_region,
        "uiFormStage": stages.form,
        "pipelineStage": stages.pipeline,
        "creationStage": stages.creation,
        "whatsappVerificationStatus": stages.verification,
        "version": _VERSION,
        "products": [],
        "createdOn": app.created_on_ms,
        "modifiedOn": app.modified_on_ms,
    }


def app_details(app: App, partner: Partner) -> dict[str, Any]:
    """Return all details of an app. Source: facts 2, `details`."""
    return {
        "id": app.id,
        "name": app.name,
        "phone": app.phone_number,
        "type": _TYPE,
        "live": app.live,
        "liveTs": (app.preferences.live_since_ms or app.created_on_ms) if app.live else 0,
        "stopped": False,
        "billingType": partner.billing_type,
        "callbackUrl": app.preferences.callback_url,
        "disableOptinPrefUrl": app.preferences.disable_optin_pref_url,
        "embedAllowed": False,
        "federated": False,
        "languageCode": app.preferences.language_code,
        "storageRegion": app.preferences.storage_region,
        "templateMessaging": app.preferences.template_messaging,
        "version": _VERSION,
        "createdOn": app.created_on_ms,
        "modifiedOn": app.modified_on_ms,
    }


def changed_app(app: App, partner: Partner) -> dict[str, Any]:
    """Return an app for the response to changing it. Source: facts 2, `PUT /partner/app/{appId}`; ledger 1.2, C7."""
    return app_details(app, partner) | {"customerId": str(app.partner_id), "customerType": "PARTNER"}
