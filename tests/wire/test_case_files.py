"""Files of wire cases have no duplicates, and nothing that no case uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.case_files import CASES, DEFAULT, FOLDER, SHARED, CaseFile, Table, read_case_file, read_toml
from waypost.domain.errors import ErrorCode
from waypost.wire.errors import ERRORS

FILES = {path.stem: read_case_file(path) for path in sorted(CASES.glob("*.toml"))}
SHARED_FILE = read_case_file(SHARED)


def test_cases_expect_the_status_and_the_text_of_each_error() -> None:
    expected = read_toml(FOLDER / "errors.toml")

    assert expected == {
        error_code.name: {"status": row.status}
        | ({} if row.text is None else {"text": row.text})
        | ({"nested": True} if row.nested else {})
        for error_code, row in ERRORS.items()
    }
    assert expected.keys() == {error_code.name for error_code in ErrorCode}


def test_every_common_case_is_one_of_some_file() -> None:
    rows = read_toml(FOLDER / "common.toml")

    used = {(group, name) for file in FILES.values() for group, names in file.common.items() for name in names}

    assert used == {(group, name) for group, names in rows.items() for name in names}


@pytest.mark.parametrize("name", [*FILES, SHARED.stem])
def test_every_request_and_list_of_steps_is_used(name: str) -> None:
    file = FILES.get(name, SHARED_FILE)

    used = {
        used_name.removeprefix(f"{name}.")
        for other, user in (*FILES.items(), (SHARED.stem, SHARED_FILE))
        for used_name in names_used(user)
        if other == name or used_name.startswith(f"{name}.") or file is SHARED_FILE
    }

    assert (file.requests.keys() | file.before.keys()) - used - {DEFAULT} == set()


@pytest.mark.parametrize("name", FILES)
def test_no_name_of_a_file_hides_a_shared_one(name: str) -> None:
    own = FILES[name].requests.keys() | FILES[name].before.keys()

    assert own & (SHARED_FILE.requests.keys() | SHARED_FILE.before.keys()) == set()


def test_there_is_one_folder_of_files() -> None:
    assert [path for path in CASES.iterdir() if path.suffix != ".toml"] == list[Path]()


def names_used(file: CaseFile) -> Iterator[str]:
    """Yield the names of requests and of lists of steps that a file uses."""
    rows = read_toml(FOLDER / "common.toml")
    common = [rows[group][name] for group, names in file.common.items() for name in names]
    steps = [step for case in file.cases.values() for step in case.get("before", [])]
    steps += [step for steps_of_name in file.before.values() for step in steps_of_name]
    yield from (step for step in steps if isinstance(step, str))
    tables: list[Table] = [
        *file.requests.values(),
        *common,
        *file.cases.values(),
        *(step for step in steps if isinstance(step, dict)),
    ]
    yield from (table["request"] for table in tables if "request" in table)
