"""What a job is about: a kind and an id, and the text in which its row keeps them.

Each queue has a text of its own, so one that is read is read by its queue: `read_subject` in
`store/queue/jobs.py`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple, Self


class SubjectKind(StrEnum):
    """What kind of thing.

    Attributes:
        prefix: what the text begins with: a word, in a queue that has jobs of several kinds.
    """

    MESSAGE = "message", "message "
    TEMPLATE_SUBMISSION = "template", "template "
    TEMPLATE_EDIT = "template-edit", "template-edit "
    TEMPLATE_DELETION = "template-delete", "template-delete "
    UNCONFIRMED_MESSAGE = "unconfirmed"
    WEBHOOK_ITEM = "item"
    CALLBACK = "callback"
    INBOUND_MEDIA = "media", "media "
    UNKNOWN = ""  # a newer version's, perhaps: its id is the whole text, and whoever works it fails on it

    prefix: str

    def __new__(cls, word: str, prefix: str = "") -> Self:
        """A member with its prefix."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.prefix = prefix
        return made


class JobSubject(NamedTuple):
    """What one job is about.

    Attributes:
        id: of the message, the template, the item, the callback or the medium.
        account_id: the operator account that an item or a medium came from; else empty.
    """

    kind: SubjectKind
    id: str
    account_id: str = ""

    @property
    def ref(self) -> str:
        """The text, as the row keeps it and as operators are shown it."""
        kind, subject_id, account_id = self
        if not account_id:
            return kind.prefix + subject_id
        if kind is SubjectKind.WEBHOOK_ITEM:
            return f"{account_id} {subject_id}"
        return f"{kind.prefix}{subject_id} {account_id}"


def read_submission(ref: str) -> JobSubject:
    """What a job of the queue to the operator is about."""
    word, _, subject_id = ref.partition(" ")
    kind = _SUBMITTED.get(word)
    return JobSubject(kind, subject_id) if kind and subject_id else JobSubject(SubjectKind.UNKNOWN, ref)


def read_item(ref: str) -> JobSubject:
    """What a job of the queue of webhooks is about."""
    account_id, _, item_id = ref.rpartition(" ")
    if not account_id:
        return JobSubject(SubjectKind.UNKNOWN, ref)
    return JobSubject(SubjectKind.WEBHOOK_ITEM, item_id, account_id)


def read_medium(ref: str) -> JobSubject:
    """What a job of the queue of media is about."""
    prefix = SubjectKind.INBOUND_MEDIA.prefix
    key, _, account_id = ref.removeprefix(prefix).partition(" ")
    if not ref.startswith(prefix) or not account_id:
        return JobSubject(SubjectKind.UNKNOWN, ref)
    return JobSubject(SubjectKind.INBOUND_MEDIA, key, account_id)


def only(kind: SubjectKind) -> Callable[[str], JobSubject]:
    """Reads the texts of a queue whose jobs are all of one kind: ids."""
    return lambda ref: JobSubject(kind, ref)


TEMPLATE_KINDS: Final = (SubjectKind.TEMPLATE_SUBMISSION, SubjectKind.TEMPLATE_EDIT, SubjectKind.TEMPLATE_DELETION)
_SUBMITTED: Final = {kind.prefix.strip(): kind for kind in (SubjectKind.MESSAGE, *TEMPLATE_KINDS)}
