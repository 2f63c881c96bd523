"""Users of an app, as the calls about opting in and out show them."""

from typing import Any, Final

from waypost.domain.app import App
from waypost.domain.app_user import WINDOW_MS, AppUser
from waypost.domain.phone_number import country_and_national

NOT_OPTED_IN: Final = "Check User optin & User Preference. Please contact developer support."
"""Source: public page "User status", without the vendor's name."""


def user_item(user: AppUser) -> dict[str, Any]:
    """A user in the list of an app's users. Source: the older messaging API, `users/{app}`."""
    country, national = country_and_national(user.phone_number)
    return {
        "countryCode": country,
        "phoneCode": national,
        "optinStatus": "OPT_IN" if user.opted_in else "OPT_OUT",
        "optinSource": user.source,
        "optinTimeStamp": user.opted_on_ms,
        "lastMessageTimeStamp": user.last_written_ms,
    }


def user_status_object(app: App, user: AppUser, now_ms: int) -> dict[str, Any]:
    """The answer about one user: opted in, unless the user has opted out (decision 0065).

    A user is active while session messages may be sent to it.

    Source: public page "User status"; facts 12, codes 1004 to 1008.
    """
    country, national = country_and_national(user.phone_number)
    is_out = user.opted_in is False
    shown: dict[str, Any] = {"status": "success"}
    if is_out:
        shown["message"] = NOT_OPTED_IN
    shown["userStatus"] = {
        "active": now_ms < user.last_written_ms + WINDOW_MS,
        "appId": app.id,
        "blocked": user.blocked,
        "countryCode": country,
        "dialCode": national,
        "phone": user.phone_number,
        "status": "OPT_OUT" if is_out else "OPT_IN",
    }
    return shown
