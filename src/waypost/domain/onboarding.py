"""Stages of an app on its way to the first message, and the rules that say what it still lacks.

The console's page, `waypost doctor` and its hints say this in the same words. The documented words of stages
(`wire/apps.py`) are a contract of their own. Only a failure is a problem: a sandbox app may stay one, and a sender of
one-time codes gets no message from a user.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from waypost.domain.app import App, OnboardingStep


class OnboardingAction(StrEnum):
    """An action that brings an app forward; the value is the text of its button."""

    SIGN_UP = "Sign up at once"
    BEGIN = "Begin onboarding"
    REGISTER = "Retry registration"
    RETRY = "Retry onboarding"
    VERIFY_CONTACT = "Verify contact"
    SUBMIT_TEMPLATE = "Submit sample template"
    SEND_MESSAGE = "Send first message"
    ADD_SUBSCRIPTION = "Add subscription"
    REPLY = "Reply from phone"
    WAIT = ""
    """Nothing is to be done: the service or the operator works on it."""


@dataclass(frozen=True, slots=True)
class AppProgress:
    """The facts from which follows what an app lacks."""

    app: App
    has_template: bool = False  # one that can be sent
    has_pending_template: bool = False  # one waits for its review
    has_subscription: bool = False
    has_inbound: bool = False  # a user has written to it
    has_delivered: bool = False  # one of its newest messages was delivered
    message_id: str = ""  # of the newest message; empty: it has sent none
    message_state: str = ""


@dataclass(frozen=True, slots=True)
class MissingItem:
    """One thing that an app lacks."""

    text: str
    action: OnboardingAction
    command: str  # what gives it in a terminal; empty: nothing does
    is_problem: bool  # it does not come by itself, and prevents what follows


@dataclass(frozen=True, slots=True)
class _Rule:
    is_missing: Callable[[AppProgress], bool]
    text: str  # with members of the progress of the app's onboarding in braces
    action: OnboardingAction
    command: str = ""  # with the members of the app in braces
    is_problem: bool = False


def _has_begun(of: AppProgress) -> bool:
    return of.app.preferences.onboarding is not None and not of.app.live


def _has_failed(of: AppProgress) -> bool:
    progress = of.app.preferences.onboarding
    return not of.app.live and progress is not None and progress.has_failed


def _is_at_registration(of: AppProgress) -> bool:
    progress = of.app.preferences.onboarding
    return progress is not None and progress.step is OnboardingStep.REGISTER


def _lacks_template(of: AppProgress) -> bool:
    return not (of.has_template or of.message_id)


_FAILED: Final = "the end of its onboarding: it has failed to {step}: {problem}"
_RULES: Final[tuple[_Rule, ...]] = (  # in the order of the way; the action of the first that applies is the next one
    _Rule(
        lambda of: not of.app.phone_number,
        "a number",
        OnboardingAction.SIGN_UP,
        "waypost app connect {id} PHONE_NUMBER PHONE_NUMBER_ID BUSINESS_ACCOUNT_ID",
    ),
    _Rule(
        lambda of: bool(of.app.phone_number) and not of.app.live and not _has_begun(of),
        "the beginning of its onboarding",
        OnboardingAction.BEGIN,
        "waypost app onboard {id}",
    ),
    _Rule(
        lambda of: _has_failed(of) and _is_at_registration(of),
        _FAILED,
        OnboardingAction.REGISTER,
        "waypost app onboard {id}",
        is_problem=True,
    ),
    _Rule(
        lambda of: _has_failed(of) and not _is_at_registration(of),
        _FAILED,
        OnboardingAction.RETRY,
        "waypost app onboard {id}",
        is_problem=True,
    ),
    _Rule(
        lambda of: _has_begun(of) and not _has_failed(of),
        "the end of its onboarding: its current step is to {step}{attempts}",
        OnboardingAction.WAIT,
    ),
    _Rule(
        lambda of: bool(of.app.preferences.contact_email) and not of.app.preferences.contact_verified,
        "a verified contact",
        OnboardingAction.VERIFY_CONTACT,
        "waypost app contact-email {id}",
    ),
    _Rule(
        lambda of: _lacks_template(of) and not of.has_pending_template,
        "an approved template",
        OnboardingAction.SUBMIT_TEMPLATE,
    ),
    _Rule(
        lambda of: _lacks_template(of) and of.has_pending_template,
        "an approved template: one waits for its review",
        OnboardingAction.WAIT,
    ),
    _Rule(lambda of: not of.message_id, "a first message", OnboardingAction.SEND_MESSAGE),
    _Rule(lambda of: bool(of.message_id) and not of.has_delivered, "a delivered message", OnboardingAction.WAIT),
    _Rule(lambda of: not of.has_subscription, "a callback subscription", OnboardingAction.ADD_SUBSCRIPTION),
    _Rule(lambda of: not of.has_inbound, "a message from a user", OnboardingAction.REPLY),
)


def list_missing(of: AppProgress) -> list[MissingItem]:
    """Return what an app lacks, in the order in which it gets it; the first one has the next action."""
    progress = of.app.preferences.onboarding
    values = {} if progress is None else {"step": progress.step.value, "problem": progress.problem, "attempts": ""}
    if progress is not None and progress.failures:
        values["attempts"] = f", which has failed {progress.failures} times: {progress.problem}"
    return [
        MissingItem(rule.text.format(**values), rule.action, rule.command.format(id=of.app.id), rule.is_problem)
        for rule in _RULES
        if rule.is_missing(of)
    ]


def describe_missing(items: list[MissingItem]) -> str:
    """Return what an app lacks in one line."""
    return f"missing: {'; '.join(item.text for item in items)}" if items else "nothing is missing"


def describe_stage(app: App) -> str:
    """Return the stage of an app's onboarding in words. Source: decision 0125."""
    progress = app.preferences.onboarding
    if app.live:
        return "live"
    if progress is None:
        return "not begun"
    return "failed" if progress.has_failed else str(progress.step)


def stage_since_ms(app: App) -> int:
    """Return since when an app is at its stage."""
    if app.live:
        return app.preferences.live_since_ms or app.created_on_ms
    return app.created_on_ms if app.preferences.onboarding is None else app.modified_on_ms
