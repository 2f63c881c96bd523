"""Completions in the three shells: the script is loaded, and completes what was typed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.polling import HANGS_AFTER_S

ENV: Final = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

# fmt: off
TYPED: Final = (
    # words                        completion
    ("waypost par",                "partner"),
    ("waypost partner li",         "list"),
    ("waypost listen --forw",      "--forward-to"),
    ("waypost completion z",       "zsh"),
)
# fmt: on


def run(*command: str, **env: str) -> str:
    return subprocess.run(
        command, env={**ENV, **env}, capture_output=True, text=True, check=True, timeout=HANGS_AFTER_S
    ).stdout


@pytest.mark.parametrize(("typed", "expected"), TYPED)
def test_bash_completes_with_the_printed_script(typed: str, expected: str) -> None:
    words = typed.split()
    script = (
        'eval "$(waypost completion bash)"; '
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _waypost_completion waypost; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )

    assert expected in run("bash", "-c", script).split()


@pytest.mark.parametrize(("typed", "expected"), TYPED)
def test_zsh_and_fish_get_the_completions(typed: str, expected: str) -> None:
    zsh = run("waypost", _WAYPOST_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=typed)
    fish = run(
        "waypost", _WAYPOST_COMPLETE="complete_fish", _TYPER_COMPLETE_FISH_ACTION="get-args", _TYPER_COMPLETE_ARGS=typed
    )

    assert f'"{expected}"' in zsh
    assert expected in fish.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_valid_in_its_shell(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(run("waypost", "completion", shell))

    assert "_WAYPOST_COMPLETE=complete_" in script.read_text()
    if shutil.which(shell):
        run(shell, "-n", str(script))
