"""The rules that say what an app lacks on its way to the first message."""

from dataclasses import replace

import pytest

from tests.support.builders import APP
from waypost.domain.app import App, AppOnboardingProgress, AppPreferences, OnboardingStep
from waypost.domain.onboarding import (
    AppProgress,
    OnboardingAction,
    describe_missing,
    describe_stage,
    list_missing,
    stage_since_ms,
)

NEW = replace(APP, phone_number="", phone_number_id="", business_account_id="", live=False)
NUMBERED = replace(APP, live=False)
DONE = AppProgress(APP, True, False, True, True, True, "m1", "delivered")


def onboarding_app(step: OnboardingStep, failures: int = 0, problem: str = "") -> App:
    progress = AppOnboardingProgress(step, due_ms=0, failures=failures, problem=problem)
    return replace(NUMBERED, modified_on_ms=APP.created_on_ms + 5, preferences=AppPreferences(onboarding=progress))


def contact_app(*, verified: bool = False) -> App:
    return replace(APP, preferences=AppPreferences(contact_email="ada@acme.test", contact_verified=verified))


@pytest.mark.parametrize(
    ("progress", "action", "text", "stage"),
    [
        (AppProgress(NEW), OnboardingAction.SIGN_UP, "a number", "not begun"),
        (AppProgress(NUMBERED), OnboardingAction.BEGIN, "the beginning of its onboarding", "not begun"),
        (
            AppProgress(onboarding_app(OnboardingStep.SUBSCRIBE, 1, "No.")),
            OnboardingAction.WAIT,
            "the end of its onboarding: its current step is to subscribe to the business account, "
            "which has failed 1 times: No.",
            "subscribe to the business account",
        ),
        (
            AppProgress(onboarding_app(OnboardingStep.SUBSCRIBE, 3, "No.")),
            OnboardingAction.RETRY,
            "the end of its onboarding: it has failed to subscribe to the business account: No.",
            "failed",
        ),
        (
            AppProgress(onboarding_app(OnboardingStep.REGISTER, 3, "Another PIN {x}.")),
            OnboardingAction.REGISTER,
            "the end of its onboarding: it has failed to register the number: Another PIN {x}.",
            "failed",
        ),
        (replace(DONE, app=contact_app()), OnboardingAction.VERIFY_CONTACT, "a verified contact", "live"),
        (AppProgress(APP), OnboardingAction.SUBMIT_TEMPLATE, "an approved template", "live"),
        (
            AppProgress(APP, has_pending_template=True),
            OnboardingAction.WAIT,
            "an approved template: one waits for its review",
            "live",
        ),
        (AppProgress(APP, has_template=True), OnboardingAction.SEND_MESSAGE, "a first message", "live"),
        (replace(DONE, has_delivered=False), OnboardingAction.WAIT, "a delivered message", "live"),
        (replace(DONE, has_subscription=False), OnboardingAction.ADD_SUBSCRIPTION, "a callback subscription", "live"),
        (replace(DONE, has_inbound=False), OnboardingAction.REPLY, "a message from a user", "live"),
    ],
)
def test_first_missing_item_has_the_next_action(
    progress: AppProgress, action: OnboardingAction, text: str, stage: str
) -> None:
    first, *others = list_missing(progress)

    assert (first.action, first.text) == (action, text)
    assert first.is_problem is (stage == "failed")
    assert describe_missing([first, *others]).startswith(f"missing: {text}")
    assert describe_stage(progress.app) == stage


def test_app_that_has_everything_lacks_nothing() -> None:
    assert list_missing(DONE) == list_missing(replace(DONE, app=contact_app(verified=True))) == []
    assert describe_missing([]) == "nothing is missing"


def test_stage_is_as_old_as_the_last_change_of_it() -> None:
    live = replace(APP, preferences=AppPreferences(live_since_ms=7))

    assert stage_since_ms(live) == 7
    assert stage_since_ms(NEW) == NEW.created_on_ms
    assert stage_since_ms(onboarding_app(OnboardingStep.REGISTER)) == APP.created_on_ms + 5
