"""The account object that login answers with."""

from typing import Any

from waypost.domain.partner import Partner


def account_object(partner: Partner, token: str) -> dict[str, Any]:
    """The partner account with its partner token: all 17 fields, in the documented order.

    Source: spec, "Partner account (login response)".
    """
    return {
        "token": token,
        "id": partner.id,
        "name": partner.name,
        "terms_read": partner.terms_read,
        "admin": partner.admin,
        "email": partner.email,
        "activationRead": partner.activation_read,
        "billingType": partner.billing_type,
        "contactName": partner.contact_name,
        "phoneNumber": partner.phone_number,
        "enableCustomer": partner.enable_customer,
        "enableWallet": partner.enable_wallet,
        "enableInrWallet": partner.enable_inr_wallet,
        "enableLoaderWallet": partner.enable_loader_wallet,
        "enableAppOnboarding": partner.enable_app_onboarding,
        "isTpp": partner.is_tpp,
        "onboardEnabled": partner.onboard_enabled,
    }


def app_token_answer(
    token: str, *, app_id: str, partner_id: int, created_on_ms: int, modified_on_ms: int
) -> dict[str, Any]:
    """What asking for an app token answers; the token does not expire.

    Source: facts 1.4.
    """
    return {
        "status": "success",
        "token": {
            "token": token,
            "authoriserId": app_id,
            "requestorId": str(partner_id),
            "createdOn": created_on_ms,
            "modifiedOn": modified_on_ms,
            "expiresOn": 0,
            "active": True,
        },
    }
