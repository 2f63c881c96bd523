"""A whole use of the window in one transaction, from given inputs: others are chosen."""

from typing import Final

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.numbers.sent_codes import SENT_CODES
from waypost.simulator.onboarding.completion import complete_signup
from waypost.simulator.onboarding.model import BUSINESS_APP_NUMBERS, BusinessAppNumber, is_in_use
from waypost.simulator.onboarding.screens import (
    accept_terms,
    choose_account,
    choose_business,
    confirm_permissions,
    enter_code,
    enter_number,
    name_account,
    request_signup_code,
    sign_in,
)
from waypost.simulator.onboarding.session import OnboardingSession, PlayBody, Step, find_open_session, shown_screens
from waypost.simulator.onboarding.window import check_window_error, end_by_user, fail_window, take_step
from waypost.simulator.state.simulator_state import Transaction

_OWN_PREFIX: Final = "1202"
"""Of the numbers that are chosen for businesses: apart from those that the operator gives."""


def play_session(transaction: Transaction, session_id: str, inputs: PlayBody) -> OnboardingSession:
    """Use the window from its first screen: to the end, to `stop_at`, or to the first error that it shows.

    An error that nobody asked for is left on its screen; with `stop` of `report` it is reported.

    Raises:
        ControlApiError: an answer is none that a person could choose, or the window does not show `stop_at`.
    """
    if inputs.stop in ("fail", "report", "end") and inputs.stop_at is not None:
        if inputs.error_code is None:
            raise ControlApiError("error_code", "is missing", "an error of the screen in stop_at")
        check_window_error("error_code", inputs.stop_at, inputs.error_code)
    session = find_open_session(transaction, session_id)
    while session.ended_ms is None:
        if session.screen == inputs.stop_at:
            return _stop(transaction, session, inputs)
        previous = session.screen
        for step in _steps(transaction, session, inputs):
            session = take_step(transaction, session_id, session.screen, step)
            if session.error is not None or session.ended_ms is not None:
                break
        if session.error is not None and session.ended_ms is None:
            return end_by_user(transaction, session_id, reports=True) if inputs.stop == "report" else session
        if session.screen == previous and session.ended_ms is None:
            raise AssertionError(f"the screen {previous} led nowhere")
    if inputs.stop_at is not None and session.error is None:
        shown = ", ".join(shown_screens(session))
        raise ControlApiError("stop_at", "is not shown by this window", f"one of {shown}", status=409)
    return session


def _stop(transaction: Transaction, session: OnboardingSession, inputs: PlayBody) -> OnboardingSession:
    session_id, code = session.session_id, inputs.error_code or 0
    match inputs.stop:
        case "leave":
            return session
        case "close":
            return end_by_user(transaction, session_id)
        case "report":
            fail_window(transaction, session_id, code)
            return end_by_user(transaction, session_id, reports=True)
        case "fail" | "end":
            return fail_window(transaction, session_id, code, ends=inputs.stop == "end")


def _steps(transaction: Transaction, session: OnboardingSession, inputs: PlayBody) -> list[Step]:
    """Return the steps of the shown screen."""
    match session.screen:
        case "sign_in":
            return [sign_in(inputs.person_id, inputs.person_name)]
        case "terms":
            return [accept_terms]
        case "business":
            return [choose_business(inputs.business_id, inputs.business)]
        case "account":
            chosen = (inputs.account_name, inputs.number, inputs.phone_number_id, inputs.further_waba_ids)
            return [choose_account(inputs.waba_id, *chosen)]
        case "profile":
            return [name_account(inputs.account_name)]
        case "number":
            number = inputs.phone_number or _choose_number(transaction, session)
            return [
                enter_number(
                    number, display_name=inputs.display_name, category=inputs.category, timezone_id=inputs.timezone_id
                )
            ]
        case "code":
            return [request_signup_code(inputs.code_method), _enter_sent_code(inputs)]
        case "permissions":
            return [confirm_permissions(inputs.assets)]
        case "done":
            return [complete_signup]


def _enter_sent_code(inputs: PlayBody) -> Step:
    """Return the step that enters the answered code, or the one that was sent."""

    def step(transaction: Transaction, session: OnboardingSession) -> OnboardingSession:
        sent = transaction.find(SENT_CODES, session.phone_number)
        return enter_code(inputs.code or (sent.code if sent is not None else ""))(transaction, session)

    return step


def _choose_number(transaction: Transaction, session: OnboardingSession) -> str:
    """Return a number that nobody has: for the business app one that is in use there, a new one if there is none."""
    on_app = transaction.values(BUSINESS_APP_NUMBERS)
    if session.number == "business_app":
        known = next((digits for digits, number in on_app.items() if not number.error_code), None)
        if known is not None:
            return known
    digits = _OWN_PREFIX + transaction.state.ids.digits(7)
    while digits in on_app or is_in_use(transaction, digits):
        digits = _OWN_PREFIX + transaction.state.ids.digits(7)
    if session.number == "business_app":
        transaction.save(BUSINESS_APP_NUMBERS, BusinessAppNumber(digits, session.account_name), digits)
    return digits
