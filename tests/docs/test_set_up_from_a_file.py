"""The commands of the page about a set-up from a file, pasted twice, with the file that it prints."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Final

from tests.docs.repository import ROOT, samples_of
from tests.support.polling import HANGS_AFTER_S

PAGE: Final = ROOT / "docs" / "how-to" / "set-up-from-a-file.md"


def test_page_is_applied_as_printed_and_changes_nothing_when_it_is_pasted_again(newcomers_folder: Path) -> None:
    """Only the receiver's address is another one: names of the page would be resolved in a network."""
    (newcomers_folder / "setup.toml").write_text(samples_of(PAGE, "toml")[0])
    settings = {
        "PATH": os.environ["PATH"],
        "HOME": str(newcomers_folder),
        "WAYPOST_DATA": str(newcomers_folder / "data"),
        "WAYPOST_SECRET_KEY": "5ec70b1d" * 8,
        "WAYPOST_ALLOWED_NETWORKS": "192.0.2.0/24",
        "SHOP_CALLBACK_URL": "https://192.0.2.1/callbacks",
    }

    outputs = [
        subprocess.run(
            ["sh", "-ec", "".join(samples_of(PAGE, "sh"))],
            cwd=newcomers_folder,
            env=settings,
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER_S,
            check=False,
        )
        for _ in range(2)
    ]

    assert [output.returncode for output in outputs] == [0, 0], outputs
    assert "8 created, 0 changed, 0 unchanged" in outputs[0].stdout
    assert "0 created, 0 changed, 8 unchanged" in outputs[1].stdout
    for name in ("setup.env", "app-secret.txt"):
        assert stat.S_IMODE((newcomers_folder / name).stat().st_mode) == 0o600


def test_page_explains_each_reference_of_the_file() -> None:
    [document, *_] = samples_of(PAGE, "toml")
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]

    named = {part.split('"')[1] for part in document.split("{ env = ")[1:] + document.split("{ file = ")[1:]}

    assert len(named) == 8
    assert [name for name in named if not any(row.startswith(f"| `{name}` |") for row in rows)] == []
