"""The last use of each template: a template unused for a year is archived automatically."""

from typing import Final

from waypost.base.clock import DAY_MS, Clock
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.store import Statement, Store
from waypost.simulator.templates.template import SimulatedTemplate

# A use within a day of the last recorded use is not recorded, so a day is added to the twelve months.
ARCHIVE_AFTER_MS: Final = 366 * DAY_MS
"""How long a template may be unused before it is archived. Source: facts 2.6, "Inactive 12 months"."""


class TemplateUsage:
    """Stores the last use of each template, to the day, in memory and in the file."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._used_ms = CachedKeyedValues(store, "template_use", int)

    def record_use(self, template: SimulatedTemplate) -> list[Statement]:
        """Record that a template is used now; return the statements for its message's transaction."""
        now_ms = self._clock.now_ms()
        if now_ms < self._used_ms.all.get(template.template_id, 0) + DAY_MS:
            return []
        self._used_ms.put(now_ms, template.template_id)
        return [self._used_ms.save_statement(now_ms, template.template_id)]

    def archive_due_ms(self, template: SimulatedTemplate) -> int | None:
        """Return when a template is archived if it stays unused; None if it will not be."""
        if template.status != "APPROVED":
            return None
        used_ms = self._used_ms.all.get(template.template_id, 0)
        return max(used_ms, template.updated_ms) + ARCHIVE_AFTER_MS
