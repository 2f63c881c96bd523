"""Reference pages of a message and its template: states, operator codes and callbacks."""

from docs.markdown import page, table
from waypost.admission.circuits import OPERATOR_CIRCUITS
from waypost.admission.schedules import OPERATOR_RETRY_SCHEDULES_S
from waypost.domain.callbacks import CALLBACK_VERSIONS, MODE_ALIASES, MODE_BITS, MODES
from waypost.domain.lifecycle import (
    EDITABLE,
    MESSAGE_TRANSITIONS,
    NOT_DELETABLE,
    OPERATOR_STATUSES,
    QUALITIES,
    SENDABLE,
    TEMPLATE_TRANSITIONS,
)
from waypost.domain.outcome import INVALID_RESPONSE_CODE, RetryReason
from waypost.operators.cloud.error_codes import OPERATOR_ERROR_ROWS, OperatorErrorRow, ReportMode
from waypost.operators.cloud.responses import NOT_ACCEPTED_YET_STATUSES, REQUEST_TIMEOUT
from waypost.wire.callbacks.kinds import CALLBACK_KINDS as CALLBACKS
from waypost.wire.callbacks.kinds import CHANGE_KINDS


def states_page() -> str:
    """Return the page of the states and their transitions."""
    parts = [
        "## Messages",
        table(
            ("From", "To"),
            [(f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to))) for one, to in MESSAGE_TRANSITIONS.items()],
        ),
        "A message that failed because its outcome was not known (code 4002) can still become `sent`, `delivered`, "
        "`read` or `deleted`, if a later status of the operator says so.",
        "## Templates",
        table(
            ("From", "To"),
            [(f"`{one}`", ", ".join(f"`{to}`" for to in sorted(to))) for one, to in TEMPLATE_TRANSITIONS.items()],
        ),
        "The status decides what can be done with a template. The category of an approved or flagged one cannot be edited.",
        table(
            ("Status", "Can be sent", "Can be edited", "Can be deleted"),
            [
                (
                    f"`{one}`",
                    _yes(one in SENDABLE),
                    _yes(one in EDITABLE),
                    _yes(TEMPLATE_TRANSITIONS[one] and one not in NOT_DELETABLE),
                )
                for one in TEMPLATE_TRANSITIONS
            ],
        ),
        "The operator's names of a status, and ours:",
        table(("Operator", "Ours"), [(f"`{theirs}`", f"`{ours}`") for theirs, ours in OPERATOR_STATUSES.items()]),
        "The operator's names of a quality, and ours:",
        table(("Operator", "Ours"), [(f"`{theirs}`", f"`{ours}`") for theirs, ours in QUALITIES.items()]),
        "[Operator codes](operator-codes.md) lists which errors of the operator are final, and which are retried.",
    ]
    return page("States", "The states of messages and templates, and the transitions between them.", *parts)


def operator_codes_page() -> str:
    """Return the page of the operator's error codes and of the retry schedules."""
    rows = [
        (
            _code(one),
            one.meaning,
            one.report_mode,
            _then(one),
            one.retry_scope if one.retry_reason and one.retry_reason is not RetryReason.ONCE else "",
            "its own" if one.partner_code is None else one.partner_code,
        )
        for one in OPERATOR_ERROR_ROWS
    ]
    return page(
        "Operator codes",
        "The effect of each error code of the operator on a submission. The code in the response decides, never the "
        "HTTP status. A `failed` callback has the operator's own code, unless only the administrator can fix the cause.",
        "A code that is not listed is retried if the operator marks it as transient (`is_transient`). Otherwise the "
        "message becomes uncertain if the status is 5xx, and fails if it is not.",
        "A failed status is always final: the operator had accepted the message. The partner decides whether to send it "
        "again; after 131049, wait at least 24 hours.",
        table(("Code", "Meaning", "Reported in", "Effect", "Paused", "Code in the callback"), rows),
        "## Retry schedules",
        "Each delay varies at random by up to a fifth. A longer delay in `Retry-After` is used instead, up to an hour. "
        "If the source, the business account or the operator account is paused, all its submissions wait for the first "
        "delay of the row. While an operator is away, its messages wait and are not attempted: one at a time tests it, at "
        f"most {OPERATOR_CIRCUITS.probe_delays_s[-1]} s after the last, and all continue when it is back (decision 0092). A message that has been retried or delayed for `message_ttl_s` fails with the code in the last "
        "column above.",
        table(
            ("Reason", "Delays in seconds; the last one repeats"),
            [(again, ", ".join(map(str, waits))) for again, waits in OPERATOR_RETRY_SCHEDULES_S.items()],
        ),
        "## Responses without a code",
        table(
            ("Response", "Effect"),
            [
                ("no connection", "retried: the operator has nothing"),
                (" and ".join(map(str, NOT_ACCEPTED_YET_STATUSES)) + " without a code", "retried"),
                (f"4xx without a code, except {REQUEST_TIMEOUT}", f"final, with code {INVALID_RESPONSE_CODE}"),
                (
                    f"an incomplete or late response, an unreadable 200 or 5xx, 3xx, {REQUEST_TIMEOUT}",
                    f"uncertain: never sent again; fails with code {INVALID_RESPONSE_CODE} unless a status arrives",
                ),
            ],
        ),
        "A template or an upload whose outcome is not known is submitted again, because submitting it twice is harmless.",
    )


def _code(row: OperatorErrorRow) -> str:
    if row.last_code is not None:
        return f"{row.code} to {row.last_code}"
    return str(row.code) if row.subcode is None else f"{row.code}, subcode {row.subcode}"


def _then(row: OperatorErrorRow) -> str:
    if row.retry_reason is None:
        return "final"
    if row.retry_reason is RetryReason.ONCE:
        return "one retry, then final"
    return f"retried: {row.retry_reason}" if row.report_mode is not ReportMode.LATER else "final"


def _yes(claim: object) -> str:
    return "yes" if claim else "no"


MODES_WITH_CALLBACKS = {one.mode for one in CALLBACKS}


def callbacks_page() -> str:
    """Return the page of the callback kinds and the modes."""
    rows = [
        (
            f"`{one.mode}`" if one.mode else "any",
            f"`{one.type}`" if one.type else "",
            f"`{one.inner_type}`" if one.inner_type else "",
            f"`{one.field}`" if one.field else "",
            one.value_content,
            one.occasion,
            one.source,
        )
        for one in CALLBACKS
    ]
    return page(
        "Callbacks",
        "Every kind of callback. A subscription gets the kinds of its modes, in its version. A kind without a `type` has "
        "no body in version 2; a kind without a `field` has none in version 3.",
        "[Receive callbacks](../how-to/receive-callbacks.md) shows bodies and a receiver.",
        table(("Mode", "`type`", "`payload.type`", "`field`", "In the value", "When", "Source"), rows),
        "## Fields of the operator",
        "Every documented field of the operator's webhooks, and its callback. A field without a body in version 2 is passed "
        "on unchanged in version 3, with `gs_app_id`, and with `gs_template_id` if it is about one of your templates. A "
        "field that is not in the table is passed on in the same way, under `OTHERS` "
        "([decision 0060](../decisions/events.md#0060-every-field-of-the-operator-is-called-back)).",
        table(
            ("Field", "Version 2", "Version 3", "Mode", "Source"),
            [
                ("`messages`", "see above", "see above", "by its content", "facts 4.4, 6, 7"),
                *(
                    (
                        f"`{one.field}`",
                        f"`{one.type}`, `{one.inner_type}`" if one.type else "nothing",
                        "as received",
                        f"`{one.mode}`",
                        one.source,
                    )
                    for one in CHANGE_KINDS.values()
                ),
            ],
        ),
        "## Modes",
        "The `mode` of a subscription is the sum of the bits of its modes. `ALL` means every mode in version 3, and adds "
        "nothing in version 2.",
        table(
            ("Mode", "Bit", "Also written"),
            [
                (
                    f"`{mode}`",
                    MODE_BITS.get(mode, "none known" if mode in MODES_WITH_CALLBACKS else "none known; no callbacks"),
                    ", ".join(f"`{one}`" for one, of in MODE_ALIASES.items() if of == mode),
                )
                for mode in MODES
            ],
        ),
        "## Versions",
        table(("Version", "Bodies"), CALLBACK_VERSIONS.items()),
    )
