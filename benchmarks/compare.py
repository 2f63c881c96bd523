"""Two runs beside each other: `python -m benchmarks.compare BEFORE.json AFTER.json`."""

import argparse
import json
from pathlib import Path
from typing import Any

NOISE = 0.25
"""Figures of one machine differ by so much from minute to minute; a smaller difference is a tie."""
NOISE_OF_RATIOS = 0.10
"""What was taken against something in the same run differs less."""


def compare(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Each figure that both have: its values, their quotient, and what it means."""
    lines = [_about("before", before), _about("after", after), *_differences(before, after), ""]
    lines.append(f"{'':4}{'engine':<11}{'figure':<58}{'before':>10}{'after':>10}{'change':>9}  ")
    known = {_key(one): one for one in before["figures"]}
    missing = 0
    for one in after["figures"]:
        other = known.get(_key(one))
        if other is None:
            missing += 1
            continue
        lines.append(
            f"{one['target']:4}{one['engine']:<11}{one['name'][:57]:<58}{other['value']:>10.2f}{one['value']:>10.2f}"
            f"{_change(other, one):>9}  {_meaning(other, one)}"
        )
    if missing:
        lines.append(f"{missing} figures of the later run are not in the earlier one")
    return "\n".join(line.rstrip() for line in lines)


def _key(one: dict[str, Any]) -> tuple[str, str, str]:
    return one["target"], one["engine"], one["name"]


def _change(before: dict[str, Any], after: dict[str, Any]) -> str:
    if not before["value"]:
        return "" if not after["value"] else "from 0"
    return f"{after['value'] / before['value'] - 1:+.0%}"


def _meaning(before: dict[str, Any], after: dict[str, Any]) -> str:
    noise = NOISE_OF_RATIOS if after["is_ratio"] else NOISE
    if before["value"] == after["value"]:
        return "same"
    if not before["value"]:
        return "WORSE" if after["lower_is_better"] else "better"
    change = after["value"] / before["value"] - 1
    if abs(change) <= noise:
        return f"tie (within {noise:.0%})"
    return "WORSE" if (change > 0) == after["lower_is_better"] else "better"


def _about(word: str, run: dict[str, Any]) -> str:
    about = run["machine"]
    changed = f" and {about['changed_files']} changed files" if about["changed_files"] else ""
    return (
        f"{word + ':':8}{about['revision']}{changed}, {about['at']}, {about['processor']}, {about['cores']} cores, "
        f"flush {about['flush_us']} us, load before {about['load_before']:.2f}"
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What makes the two hard to compare."""
    told = [
        f"{name}: {before['machine'].get(name)} and {after['machine'].get(name)}"
        for name in ("processor", "cores", "python", "engines")
        if before["machine"].get(name) != after["machine"].get(name)
    ]
    for name, value in after["settings"].items():
        if before["settings"].get(name) != value and name not in ("only", "engines"):
            told.append(f"setting {name}: {before['settings'].get(name)} and {value}")
    told += [
        f"{word}: something else was running"
        for word, run in (("before", before), ("after", after))
        if run["machine"]["load_before"] > 0.5
    ]
    return [f"NOT ALIKE: {one}" for one in told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    chosen = parser.parse_args()
    print(compare(json.loads(chosen.before.read_text()), json.loads(chosen.after.read_text())))


if __name__ == "__main__":
    main()
