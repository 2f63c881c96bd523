"""The window of embedded signup: its steps, and the ways in which a person ends it.

A page and the control API call the same functions: `open_session`, then `take_step` with the function of the shown
screen, and `end_by_user`; `play` does all of it with given inputs. `page_events` is what the page gets. Nothing is
created before the window is finished, except the person who signs in: then business, account, number, access and code
are one transaction.

Source: facts 14.1, 14.2, 14.3, 14.8; decision 0123.
"""

from typing import Any

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.faults.model import FaultSubject, armed_faults, select_fault
from waypost.simulator.onboarding.completion import complete_signup
from waypost.simulator.onboarding.session import (
    SESSIONS,
    OnboardingSession,
    Step,
    WindowErrorShown,
    end_session,
    find_open_session,
    show_error,
)
from waypost.simulator.state.embedded_signup import BREAKS, SCREENS, WINDOW_ERRORS, ScreenName
from waypost.simulator.state.simulator_state import Transaction


def take_step(transaction: Transaction, session_id: str, screen: ScreenName, step: Step) -> OnboardingSession:
    """Enter something on a screen, and return the session: at the next screen, or at this one with an error.

    Raises:
        ControlApiError: 404, the session is unknown; 409, it has ended, or shows another screen; or the input names
            something that does not exist, which a person could not choose.
    """
    session = find_open_session(transaction, session_id)
    if session.screen != screen:
        rule = f"shows the screen {session.screen}, not {screen}"
        raise ControlApiError("session_id", rule, f"the call for the screen {session.screen}", status=409)
    try:
        _raise_faulted_error(transaction, session)
        entered = step(transaction, session)
    except WindowErrorShown as refused:
        entered = show_error(session, refused.code, refused.back_to)
        if refused.ends:
            entered = end_session(transaction, entered, "ERROR", _error_data(transaction, entered))
    transaction.save(SESSIONS, entered, session_id)
    return entered


def _raise_faulted_error(transaction: Transaction, session: OnboardingSession) -> None:
    for name in session.breaks:
        error = BREAKS[name].error
        if error is not None and error[0] == session.screen:
            raise WindowErrorShown(error[1])
    state = transaction.state
    if session.screen == "done" or not armed_faults(state, "screen"):
        return
    number = (session.phone_number_id, session.phone_number) if session.phone_number else ()
    subject = FaultSubject(session.screen, app=session.app_id, number=number, subject=session.session_id)
    fault = select_fault(state, transaction, "screen", [subject])
    if fault is not None:
        raise WindowErrorShown(int(fault.value), ends=bool(fault.effect.get("ends")))


def end_by_user(transaction: Transaction, session_id: str, *, reports: bool = False) -> OnboardingSession:
    """Close the window: on the last screen that finishes it, before that it cancels it.

    Args:
        reports: whether the person reports the shown error, which the page then gets.

    Raises:
        ControlApiError: as for `find_open_session`; 409, there is no error to report.
    """
    session = find_open_session(transaction, session_id)
    if reports and session.error is None:
        raise ControlApiError("session_id", "shows no error", "a session whose window shows one", status=409)
    if reports:
        ended = end_session(transaction, session, "CANCEL", _error_data(transaction, session))
    elif session.screen == "done":
        try:
            ended = complete_signup(transaction, session)
        except WindowErrorShown as refused:
            ended = show_error(session, refused.code, refused.back_to)
    else:
        step = SCREENS[session.screen].current_step
        ended = end_session(transaction, session, "CANCEL" if step else "", {"current_step": step} if step else {})
    transaction.save(SESSIONS, ended, session_id)
    return ended


def fail_window(transaction: Transaction, session_id: str, code: int, *, ends: bool = False) -> OnboardingSession:
    """Show an error on the current screen; with `ends` it ends the window, and the page gets it.

    Raises:
        ControlApiError: as for `find_open_session`; the screen cannot show this error.
    """
    session = find_open_session(transaction, session_id)
    check_window_error("code", session.screen, code)
    failed = show_error(session, code)
    if ends:
        failed = end_session(transaction, failed, "ERROR", _error_data(transaction, failed))
    transaction.save(SESSIONS, failed, session_id)
    return failed


def check_window_error(field: str, screen: str, code: int) -> None:
    """Check that a screen can show an error. Raises ControlApiError, with the codes that it can show."""
    if code not in WINDOW_ERRORS or screen not in WINDOW_ERRORS[code].screens:
        codes = ", ".join(str(known) for known, row in WINDOW_ERRORS.items() if screen in row.screens)
        raise ControlApiError(field, f"{code} is no error of the screen {screen}", codes or "none")


def _error_data(transaction: Transaction, session: OnboardingSession) -> dict[str, Any]:
    error = session.error
    assert error is not None, "there is an error to report"  # noqa: S101  a defect, not an input
    return {
        "error_message": error.text,
        "error_code": str(error.code),
        "session_id": session.session_id,
        "timestamp": str(transaction.state.clock.now_ms() // 1000),
    }
