"""The check of a new template's name: not in use, not locked, and not too many templates."""

from collections.abc import Callable
from typing import Final

from waypost.base.clock import DAY_MS, HOUR_MS, Clock
from waypost.simulator.accounts.usage_counts import CREATIONS, UsageCounts
from waypost.simulator.errors import TITLES, GraphApiError, template_error
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.languages import language_name
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store
from waypost.simulator.templates.drafts import SubmittedTemplate
from waypost.simulator.templates.template import SimulatedTemplate

NAME_LOCK_MS: Final = 30 * DAY_MS  # Source: facts 2.6
_MAX_CREATIONS_PER_HOUR: Final = 100  # Source: facts 2.3, "Creations"
_TOO_MANY_CREATIONS_CODE: Final = 80007  # facts 8 has no code for creations; this one is the account's own limit

SAMPLE_NAMES: Final = frozenset(  # Source: facts 2.4, "Name of a sample template"
    {
        "hello_world",
        "sample_flight_confirmation",
        "sample_happy_hour_announcement",
        "sample_issue_resolution",
        "sample_movie_ticket_confirmation",
        "sample_purchase_feedback",
        "sample_shipping_confirmation",
    }
)
TemplateKey = tuple[str, str, str]
"""Account, name and language; the empty language means all languages."""


class TemplateNames:
    """Checks new names, and stores the names that a deletion has locked."""

    def __init__(self, store: Store, clock: Clock, settings: SimulatorSettingsStore, usage_counts: UsageCounts) -> None:
        self._clock = clock
        self._settings = settings
        self._usage_counts = usage_counts
        self._locked_until_ms = CachedKeyedValues(store, "name_lock", int)  # of an account, by `_lock_key`

    def check(
        self,
        waba_id: str,
        draft: SubmittedTemplate,
        find_template: Callable[[TemplateKey], SimulatedTemplate | None],
        count: int,
    ) -> None:
        """Check the name of a new template and the number of templates.

        Args:
            waba_id: the account.
            draft: the submission.
            find_template: returns the template with a name and language.
            count: how many templates the account has.

        Raises:
            GraphApiError: 2388023, 2388024, 2388019; 100 for a sample's name and 80007 for the hour's
                hundred and first creation, both only if the settings are strict.

        Source: facts 2.3, 2.4, 2.6.
        """
        settings = self._settings.value
        if settings.strict and draft.name in SAMPLE_NAMES:
            raise template_error(None, "Template name is already used as a sample template.")
        self._check_locks(waba_id, draft)
        existing = find_template((waba_id, draft.name, draft.language))
        if existing is not None and existing.status == "PENDING_DELETION":
            raise template_error(2388023, _being_deleted_text(draft.language, "in less than a minute"))
        if existing is not None:
            raise template_error(
                2388024,
                f"There is already {language_name(draft.language)} content for this template. You "
                "can create a new template and try again.",
            )
        if count >= settings.templates_at_most:
            raise template_error(2388019, f"An account has at most {settings.templates_at_most} message templates.")
        if (
            settings.strict
            and self._usage_counts.count(CREATIONS, waba_id, within_ms=HOUR_MS) >= _MAX_CREATIONS_PER_HOUR
        ):
            status, title = TITLES[_TOO_MANY_CREATIONS_CODE]
            error = {"message": f"(#{_TOO_MANY_CREATIONS_CODE}) {title}", "type": "OAuthException"}
            raise GraphApiError(status, {**error, "code": _TOO_MANY_CREATIONS_CODE})

    def count_creation(self, template: SimulatedTemplate) -> Statement:
        """Count a creation; return the statement for its transaction."""
        return self._usage_counts.record(CREATIONS, template.waba_id, template.template_id)

    def build_locks(
        self, templates: list[SimulatedTemplate], *, for_all_languages: bool
    ) -> tuple[dict[TemplateKey, int], list[Statement]]:
        """Return the locks that deleting these templates creates, and the statements that store them.

        Source: facts 2.6: the name of an approved one, for 30 days.
        """
        until_ms = self._clock.now_ms() + NAME_LOCK_MS
        locks = {
            (template.waba_id, template.name, "" if for_all_languages else template.language): until_ms
            for template in templates
            if template.status == "APPROVED"
        }
        return locks, [self._locked_until_ms.save_statement(until_ms, *_lock_key(*key)) for key in locks]

    def set_locks(self, locks: dict[TemplateKey, int]) -> None:
        """Set locks in memory that have been stored."""
        for key, until_ms in locks.items():
            self._locked_until_ms.put(until_ms, *_lock_key(*key))

    def _check_locks(self, waba_id: str, draft: SubmittedTemplate) -> None:
        now_ms = self._clock.now_ms()
        for language in ("", draft.language):
            key, owner = _lock_key(waba_id, draft.name, language)
            if self._locked_until_ms.values_of(owner).get(key, 0) > now_ms:
                retry_text = "in 4 weeks or consider creating a new message template"
                raise template_error(2388023, _being_deleted_text(draft.language, retry_text))


def _lock_key(waba_id: str, name: str, language: str) -> tuple[str, str]:
    return f"{name} {language}", waba_id


def _being_deleted_text(language: str, retry_text: str) -> str:
    """Return the text about a name that is being deleted. Source: facts 2.4: one number, two texts."""
    name = language_name(language)
    return (
        f"New {name} content can't be added while the existing {name} content is being deleted. Try again {retry_text}."
    )
