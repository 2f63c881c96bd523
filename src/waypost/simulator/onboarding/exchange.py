"""The way from a code to a token: the endpoint where an app gets its own token, and that of a business.

Source: the operator's page "App access tokens"; facts 14.4.
"""

import hmac
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.parameters import one_of, read_parameters, read_text
from waypost.simulator.apis.requests import Call, add_form_fields
from waypost.simulator.onboarding.model import SIGNUP_CODES, SignupCode
from waypost.simulator.state.accounts import GraphApp
from waypost.simulator.state.embedded_signup import EVENTS_SCOPE
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import MANAGEMENT, PERMISSIONS, TOKENS, Token

operation = GraphOperations()

_EXPIRED, _OTHER_URI, _USED = 36007, 36008, 36009
_MISSING: Final = ("client_id", "client_secret")


class AppTokenParameters(Struct, frozen=True):
    """The parameters of a request for an app's token."""

    grant_type: Annotated[str, one_of("client_credentials")]
    client_id: Annotated[str, read_text] = ""
    client_secret: Annotated[str, read_text] = ""


class CodeExchangeParameters(Struct, frozen=True):
    """The parameters of the exchange of a code; the secret may be absent nowhere, the address where there was none."""

    client_id: Annotated[str, read_text] = ""
    client_secret: Annotated[str, read_text] = ""
    code: Annotated[str, read_text] = ""
    redirect_uri: Annotated[str, read_text] = ""
    grant_type: Annotated[str, one_of("authorization_code")] = "authorization_code"


@operation("oauth.read", "GET", "oauth", is_open=True)
async def get_token(state: SimulatorState, call: Call) -> dict[str, Any]:
    """Return the token of an app, made of its id and secret, or that of a business for the `code` of a signup.

    The app's token configures the app and opens no account.

    Raises:
        GraphApiError: 101, the app is unknown; 1, the secret is wrong; 100, another grant type, and for a code with
            the subcode 36007, it has expired; 36008, another `redirect_uri`; 36009, it was used, or is none.
    """
    return await _respond(state, call, call.query)


@operation("oauth.exchange", "POST", "oauth", is_open=True)
async def exchange_code(state: SimulatorState, call: Call) -> dict[str, Any]:
    """Return the same for parameters in a form or JSON."""
    if call.body is not None:
        call = await add_form_fields(call)
    return await _respond(state, call, call.fields)


async def _respond(state: SimulatorState, call: Call, parameters: dict[str, Any]) -> dict[str, Any]:
    given = parameters if call.edge == "access_token" else {}
    if "code" not in given and given.get("grant_type") != "authorization_code":
        own = read_parameters(AppTokenParameters, given)
        app = _check_app(state, own.client_id, own.client_secret)
        return {"access_token": app.token, "token_type": "bearer"}
    for name in _MISSING:
        if not given.get(name):
            raise _oauth_error(101, f"Missing {name} parameter.")
    exchange = read_parameters(CodeExchangeParameters, given)
    app = _check_app(state, exchange.client_id, exchange.client_secret)
    if not exchange.code:
        raise _oauth_error(1, "Missing authorization code")
    token = await state.transact(lambda transaction: _exchange(transaction, app, exchange))
    lifetime = {} if token.expires_ms is None else {"expires_in": (token.expires_ms - token.issued_ms) // 1000}
    return {"access_token": token.token, "token_type": "bearer", **lifetime}


def _check_app(state: SimulatorState, client_id: str, client_secret: str) -> GraphApp:
    app = state.accounts.apps.get(client_id)
    if app is None:
        raise _oauth_error(101, "Error validating application. Cannot get application info")
    if not hmac.compare_digest(client_secret.encode(), app.app_secret.encode()):
        raise _oauth_error(1, "Error validating client secret.")
    return app


def _exchange(transaction: Transaction, app: GraphApp, exchange: CodeExchangeParameters) -> Token:
    """Use a code, and return its token. A code of another app looks like an unknown one."""
    code = transaction.find(SIGNUP_CODES, exchange.code)
    if code is None or code.app_id != app.app_id:
        raise _oauth_error(100, "Invalid verification code format.", _USED)
    if code.used_ms is not None:
        raise _oauth_error(100, "This authorization code has been used.", _USED)
    now_ms = transaction.state.clock.now_ms()
    if now_ms >= code.expires_ms:
        raise _oauth_error(100, "This authorization code has expired.", _EXPIRED)
    if exchange.redirect_uri != code.redirect_uri:
        text = (
            "Error validating verification code. Please make sure your redirect_uri is identical to the one you used "
            "in the OAuth dialog request"
        )
        raise _oauth_error(100, text, _OTHER_URI)
    transaction.save(SIGNUP_CODES, replace(code, used_ms=now_ms), code.code)
    token = issue_token(transaction, code)
    transaction.save(TOKENS, token, token.token)
    return token


def issue_token(transaction: Transaction, code: SignupCode) -> Token:
    """Return a new token for what a signup has given.

    A scope for events permits management, too: calls about the account worked with it when signups broke.

    Source: facts 14.9, "whatsapp_business_manage_events".
    """
    now_ms = transaction.state.clock.now_ms()
    permissions = tuple(scope for scope in code.scopes if scope in PERMISSIONS)
    if EVENTS_SCOPE in code.scopes and MANAGEMENT not in permissions:
        permissions = (MANAGEMENT, *permissions)
    return Token(
        token=f"EAA{transaction.state.ids.secret()}",
        waba_ids=code.waba_ids,
        permissions=permissions,
        issued_ms=now_ms,
        expires_ms=None if code.token_days is None else now_ms + code.token_days * DAY_MS,
        app_id=code.app_id,
        scopes=code.scopes,
        assets=code.assets,
        user_id=code.system_user_id,
    )


def _oauth_error(code: int, message: str, subcode: int | None = None) -> GraphApiError:
    error: dict[str, Any] = {"message": message, "type": "OAuthException", "code": code}
    return GraphApiError(400, error if subcode is None else {**error, "error_subcode": subcode})
