"""Detecting the type of a file from its bytes."""

from typing import Final

import pytest

from tests.support.media_samples import SAMPLES
from waypost.api.file_types import is_text, possible_types, types_of
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED_TYPES
from waypost.wire.media import choose_type, content_disposition, read_type

_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
# fmt: off
FIRST: Final = {
    "png":           "image/png",
    "jpeg":          "image/jpeg",
    "webp":          "image/webp",
    "mp4":           "video/mp4",
    "mp4_of_camera": "video/mp4",
    "3gp":           "video/3gpp",
    "m4a":           "audio/mp4",
    "mov":           "video/quicktime",
    "mp3":           "audio/mpeg",
    "mp3_mpeg2":     "audio/mpeg",
    "mp3_tagged":    "audio/mpeg",
    "aac":           "audio/aac",
    "amr":           "audio/amr",
    "ogg":           "audio/ogg",
    "pdf":           "application/pdf",
    "doc":           "application/msword",
    "docx":          f"{_OFFICE}wordprocessingml.document",
    "xlsx":          f"{_OFFICE}spreadsheetml.sheet",
    "pptx":          f"{_OFFICE}presentationml.presentation",
    "zip":           "application/zip",
    "text":          "text/plain",
    "csv":           "text/plain",
    "gif":           "image/gif",
    "wav":           "audio/wave",
    "exe":           "application/vnd.microsoft.portable-executable",
}
# fmt: on


@pytest.mark.parametrize("kind", FIRST)
def test_type_is_detected_from_the_bytes(kind: str) -> None:
    content = SAMPLES[kind]

    assert types_of(content, content)[0] == FIRST[kind]


def test_every_accepted_type_is_detected_in_a_sample() -> None:
    detected = {file_type for content in SAMPLES.values() for file_type in types_of(content, content)}

    assert detected >= set(ACCEPTED_TYPES)


def test_document_is_detected_by_the_names_in_the_archive_not_by_its_content() -> None:
    """The content of an archived file may be anything."""
    content = SAMPLES["zip"].replace(b"<x/>", b"ppt/")

    assert types_of(content, content) == ("application/zip",)


def test_incomplete_archive_may_still_be_any_document() -> None:
    assert len(possible_types(SAMPLES["docx"])) == 3


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a\0b", bytes(range(128, 256)), b"\x01"])
def test_unknown_bytes_are_an_octet_stream_or_plain_text(content: bytes) -> None:
    assert types_of(content, content)[-1] in ("application/octet-stream", "text/plain")
    assert is_text(content) is (content == b"")


def test_text_that_is_cut_inside_a_character_is_text() -> None:
    assert is_text("größe".encode()[:4])


def test_declared_type_counts_where_the_bytes_may_be_that() -> None:
    assert choose_type(("video/mp4", "audio/mp4"), "audio/mp4", "", for_handle=False) == "audio/mp4"


def test_hint_decides_where_nothing_is_declared() -> None:
    types = types_of(SAMPLES["doc"], b"")

    assert choose_type(types, "", "application/vnd.ms-excel", for_handle=False) == ("application/vnd.ms-excel")


def test_wrong_hint_is_ignored() -> None:
    assert choose_type(("image/png",), "", "image/jpeg", for_handle=False) == "image/png"


def test_received_type_is_reported_without_what_could_break_the_text() -> None:
    with pytest.raises(ApiError) as raised:
        choose_type(("image/png",), "x'\r\n" * 80, "", for_handle=True)

    assert raised.value.code is ErrorCode.WRONG_FILE_TYPE
    assert raised.value.explanation == (
        "Param file must be a file with one of the following types: application/pdf, image/jpeg, "
        f"image/png, video/mp4. Received file of type '{'x' * 80}'."
    )


@pytest.mark.parametrize(
    ("text", "type"),
    [("image/png", "image/png"), (" IMAGE/JPG ", "image/jpeg"), ("audio/ogg; codecs=opus", "audio/ogg"), ("", "")],
)
def test_declared_type_is_normalized(text: str, type: str) -> None:
    assert read_type(text) == type


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.png", 'attachment; filename="a.png"'),
        ('a"b\\.png', "attachment; filename=\"a_b_.png\"; filename*=UTF-8''a%22b%5C.png"),
        ("\r\nX: 1", "attachment; filename=\"__X: 1\"; filename*=UTF-8''%0D%0AX%3A%201"),
    ],
)
def test_name_cannot_break_out_of_its_header(name: str, expected: str) -> None:
    assert content_disposition(name) == expected
