"""The wheel and the sdist: what is in them, how large they may become, and what an index shows of them."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Final

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from tests.docs.repository import ROOT, name_of, repository_files
from tests.resolutions import PYTHONS
from waypost import __version__

# fmt: off
MAX_BYTES: Final = {"whl": 2_250_000, "tar.gz": 1_750_000}
SUFFIXES: Final = {".py", ".html", ".css", ".js", ".json", ".svg", ".txt", ".typed"}  # of the package's files
SDIST: Final = {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src"}
# fmt: on


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files that an upload consists of, by their ending."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    return {ending: next(folder.glob(f"*.{ending}")) for ending in MAX_BYTES}


@pytest.fixture(scope="module")
def metadata(built: dict[str, Path]) -> Metadata:
    """The metadata of the wheel, checked against the standard."""
    with zipfile.ZipFile(built["whl"]) as wheel:
        return Metadata.from_email(wheel.read(f"waypost-{__version__}.dist-info/METADATA"), validate=True)


def test_wheel_has_the_package_and_nothing_else(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built["whl"]) as wheel:
        names = wheel.namelist()
    package = {name for name in names if not name.startswith(f"waypost-{__version__}.dist-info/")}

    assert [name for name in package if not name.startswith("waypost/")] == []
    assert {Path(name).suffix for name in package} == SUFFIXES
    assert {f"waypost/{path.relative_to(ROOT / 'src/waypost').as_posix()}" for path in sources()} == package


def test_sdist_has_what_a_wheel_is_built_from_and_nothing_else(built: dict[str, Path]) -> None:
    with tarfile.open(built["tar.gz"]) as sdist:
        names = [Path(member.name).relative_to(f"waypost-{__version__}") for member in sdist.getmembers()]

    assert {name.parts[0] for name in names} == SDIST
    assert {name.parts[:2] for name in names if name.parts[0] == "src"} == {("src", "waypost")}


@pytest.mark.parametrize("ending", MAX_BYTES)
def test_size_stays_below_its_limit(built: dict[str, Path], ending: str) -> None:
    assert built[ending].stat().st_size < MAX_BYTES[ending]


def test_description_has_no_link_that_leads_nowhere(metadata: Metadata) -> None:
    """An index shows the description without the files of the repository, which has no public address yet."""
    assert metadata.description is not None
    links = re.findall(r"\]\(([^)\s]+)\)", metadata.description)

    assert [link for link in links if not link.startswith("#")] == []
    assert len(metadata.description) > 5_000


def test_no_file_names_an_address_that_is_not_ours_yet() -> None:
    """Whoever takes these names could give a user another program; the text for the release stands in one page."""
    page = "docs/contributing/releasing.md"
    own = name_of(Path(__file__))
    addresses = re.compile(
        r"github\.com/waypost|ghcr\.io/waypost|githubusercontent\.com/waypost|uvx waypost|pip install '?waypost\b"
    )

    named = {name_of(path) for path in repository_files() if addresses.search(path.read_text("utf-8", "ignore"))}

    assert named - {own} == {page}


def test_metadata_names_authors_licence_and_the_pythons_that_are_tested(metadata: Metadata) -> None:
    assert metadata.author == "The Waypost authors"
    assert metadata.license_expression == "Apache-2.0"
    assert not metadata.project_urls
    named = [line.rpartition(" ")[2] for line in metadata.classifiers or [] if re.search(r":: 3\.\d+$", line)]
    assert tuple(named) == PYTHONS
    assert str(metadata.requires_python) == f">={PYTHONS[0]}"


def sources() -> list[Path]:
    """Return the files of the package, without what Python writes beside them."""
    return [path for path in (ROOT / "src/waypost").rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_page_about_resolutions_has_each_dependency_with_its_lowest_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {
        (requirement.name, str(requirement.specifier).removeprefix(">="))
        for requirement in map(Requirement, project["dependencies"])
    }
    text = (ROOT / "docs" / "contributing" / "resolutions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z][a-z0-9-]+) \| ([\d.]+) \|", text, re.MULTILINE)

    assert set(rows) == needed
