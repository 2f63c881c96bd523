"""What a job is about is read as it was written, whatever the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import Lane, subject_of

WORDS = st.sampled_from([*SubjectKind, "main", "7", "template-archive"])
TEXTS = st.text() | st.lists(WORDS, max_size=4).map(" ".join)


@pytest.mark.parametrize(
    ("lane", "ref", "subject"),
    [
        (Lane.SUBMISSIONS, "message m", JobSubject(SubjectKind.MESSAGE, "m")),
        (Lane.SUBMISSIONS, "template t", JobSubject(SubjectKind.TEMPLATE_SUBMISSION, "t")),
        (Lane.SUBMISSIONS, "template-edit t", JobSubject(SubjectKind.TEMPLATE_EDIT, "t")),
        (Lane.SUBMISSIONS, "template-delete t", JobSubject(SubjectKind.TEMPLATE_DELETION, "t")),
        (Lane.SUBMISSIONS, "template-archive t", JobSubject(SubjectKind.UNKNOWN, "template-archive t")),
        (Lane.SUBMISSIONS, "message ", JobSubject(SubjectKind.UNKNOWN, "message ")),
        (Lane.ARRIVALS, "main 7", JobSubject(SubjectKind.WEBHOOK_ITEM, "7", "main")),
        (Lane.ARRIVALS, "7", JobSubject(SubjectKind.UNKNOWN, "7")),
        (Lane.CALLBACKS, "c", JobSubject(SubjectKind.CALLBACK, "c")),
        (Lane.DOUBTS, "m", JobSubject(SubjectKind.UNCONFIRMED_MESSAGE, "m")),
        (Lane.MEDIA, "media k main", JobSubject(SubjectKind.INBOUND_MEDIA, "k", "main")),
        (Lane.MEDIA, "media k", JobSubject(SubjectKind.UNKNOWN, "media k")),
    ],
)
def test_subject_is_read_from_its_text(lane: Lane, ref: str, subject: JobSubject) -> None:
    assert subject_of(lane, ref) == subject
    assert subject.ref == ref


@given(lane=st.sampled_from(Lane), ref=TEXTS)
def test_any_text_is_read_and_written_as_it_was(lane: Lane, ref: str) -> None:
    assert subject_of(lane, ref).ref == ref
