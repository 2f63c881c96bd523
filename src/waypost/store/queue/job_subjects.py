"""The queues, the states of their jobs, and the subjects of jobs: a kind and an id, stored as one text.

Each queue has its own text format, so the text is parsed by queue: `read_subject` in `store/queue/jobs.py`.
"""

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple, Self


class SubjectKind(StrEnum):
    """Kinds of subjects."""

    MESSAGE = "message", "message "
    TEMPLATE_SUBMISSION = "template", "template "
    TEMPLATE_EDIT = "template-edit", "template-edit "
    TEMPLATE_DELETION = "template-delete", "template-delete "
    TEMPLATE_REFRESH = "template-refresh", "template-refresh "
    APP_ONBOARDING = "onboarding", "onboarding "
    UNCONFIRMED_MESSAGE = "unconfirmed"
    WEBHOOK_ITEM = "item"
    CALLBACK = "callback"
    INBOUND_MEDIA = "media", "media "
    UNKNOWN = ""  # perhaps of a newer version: its id is the whole text, and working it fails

    prefix: str  # beginning of the text, in a queue that has jobs of several kinds

    def __new__(cls, value: str, prefix: str = "") -> Self:
        """Create a member with its prefix."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.prefix = prefix
        return member


class JobSubject(NamedTuple):
    """The subject of one job."""

    kind: SubjectKind
    id: str  # of the message, the template, the app, the item, the callback or the inbound media
    account_id: str = ""  # the operator account that an item or media came from; otherwise empty

    @property
    def ref(self) -> str:
        """Return the text, as stored in the row and shown to administrators."""
        kind, subject_id, account_id = self
        if not account_id:
            return kind.prefix + subject_id
        if kind is SubjectKind.WEBHOOK_ITEM:
            return f"{account_id} {subject_id}"
        return f"{kind.prefix}{subject_id} {account_id}"


def read_submission(ref: str) -> JobSubject:
    """Parse the subject of a job of the outbound queue."""
    name, _, subject_id = ref.partition(" ")
    kind = _SUBMISSION_KINDS.get(name)
    return JobSubject(kind, subject_id) if kind and subject_id else JobSubject(SubjectKind.UNKNOWN, ref)


def read_item(ref: str) -> JobSubject:
    """Parse the subject of a job of the webhooks queue."""
    account_id, _, item_id = ref.rpartition(" ")
    if not account_id:
        return JobSubject(SubjectKind.UNKNOWN, ref)
    return JobSubject(SubjectKind.WEBHOOK_ITEM, item_id, account_id)


def read_medium(ref: str) -> JobSubject:
    """Parse the subject of a job of the media queue."""
    prefix = SubjectKind.INBOUND_MEDIA.prefix
    key, _, account_id = ref.removeprefix(prefix).partition(" ")
    if not ref.startswith(prefix) or not account_id:
        return JobSubject(SubjectKind.UNKNOWN, ref)
    return JobSubject(SubjectKind.INBOUND_MEDIA, key, account_id)


def single_kind_reader(kind: SubjectKind) -> Callable[[str], JobSubject]:
    """Return the parser for a queue whose jobs are all of one kind: the texts are ids."""
    return lambda ref: JobSubject(kind, ref)


TEMPLATE_KINDS: Final = (
    SubjectKind.TEMPLATE_SUBMISSION,
    SubjectKind.TEMPLATE_EDIT,
    SubjectKind.TEMPLATE_DELETION,
    SubjectKind.TEMPLATE_REFRESH,
)
_SUBMISSION_KINDS: Final = {
    kind.prefix.strip(): kind for kind in (SubjectKind.MESSAGE, *TEMPLATE_KINDS, SubjectKind.APP_ONBOARDING)
}


class QueueName(IntEnum):
    """The queues; the numbers are stored."""

    OUTBOUND = 1
    WEBHOOKS = 2
    CALLBACKS = 3
    UNCONFIRMED = 4
    MEDIA = 5


class JobState(IntEnum):
    """States of a job; the numbers are stored."""

    OPEN = 0
    IN_FLIGHT = 1
    DEAD_LETTER = 2
    DEAD_LETTER_IN_FLIGHT = 3  # and it may have been sent
