"""The subject of a job is read back as it was written, whatever the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import read_subject

TOKENS = st.sampled_from([*SubjectKind, "main", "7", "template-archive"])
TEXTS = st.text() | st.lists(TOKENS, max_size=4).map(" ".join)


@pytest.mark.parametrize(
    ("queue_name", "ref", "subject"),
    [
        (QueueName.OUTBOUND, "message m", JobSubject(SubjectKind.MESSAGE, "m")),
        (QueueName.OUTBOUND, "template t", JobSubject(SubjectKind.TEMPLATE_SUBMISSION, "t")),
        (QueueName.OUTBOUND, "template-edit t", JobSubject(SubjectKind.TEMPLATE_EDIT, "t")),
        (QueueName.OUTBOUND, "template-delete t", JobSubject(SubjectKind.TEMPLATE_DELETION, "t")),
        (QueueName.OUTBOUND, "onboarding a", JobSubject(SubjectKind.APP_ONBOARDING, "a")),
        (QueueName.OUTBOUND, "template-archive t", JobSubject(SubjectKind.UNKNOWN, "template-archive t")),
        (QueueName.OUTBOUND, "message ", JobSubject(SubjectKind.UNKNOWN, "message ")),
        (QueueName.WEBHOOKS, "main 7", JobSubject(SubjectKind.WEBHOOK_ITEM, "7", "main")),
        (QueueName.WEBHOOKS, "7", JobSubject(SubjectKind.UNKNOWN, "7")),
        (QueueName.CALLBACKS, "c", JobSubject(SubjectKind.CALLBACK, "c")),
        (QueueName.UNCONFIRMED, "m", JobSubject(SubjectKind.UNCONFIRMED_MESSAGE, "m")),
        (QueueName.MEDIA, "media k main", JobSubject(SubjectKind.INBOUND_MEDIA, "k", "main")),
        (QueueName.MEDIA, "media k", JobSubject(SubjectKind.UNKNOWN, "media k")),
    ],
)
def test_subject_is_read_from_its_text(queue_name: QueueName, ref: str, subject: JobSubject) -> None:
    assert read_subject(queue_name, ref) == subject
    assert subject.ref == ref


@given(queue_name=st.sampled_from(QueueName), ref=TEXTS)
def test_any_text_is_read_and_written_as_it_was(queue_name: QueueName, ref: str) -> None:
    assert read_subject(queue_name, ref).ref == ref
