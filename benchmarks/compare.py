"""Compares two runs: `python -m benchmarks.compare BEFORE.json AFTER.json`."""

import argparse
import json
from pathlib import Path
from typing import Any

NOISE = 0.25
"""Measurements of one machine vary by this much from minute to minute; a smaller difference is a tie."""
NOISE_OF_RATIOS = 0.10
"""Ratios within one run vary less."""


def compare(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return a table of the measurements of both runs: values, change and meaning."""
    lines = [_describe_run("before", before), _describe_run("after", after), *_differences(before, after), ""]
    lines.append(f"{'':4}{'engine':<11}{'measurement':<58}{'before':>10}{'after':>10}{'change':>9}  ")
    earlier = {_key(row): row for row in before["figures"]}
    missing = 0
    for after_row in after["figures"]:
        before_row = earlier.get(_key(after_row))
        if before_row is None:
            missing += 1
            continue
        lines.append(
            f"{after_row['target']:4}{after_row['engine']:<11}{after_row['name'][:57]:<58}{before_row['value']:>10.2f}{after_row['value']:>10.2f}"
            f"{_change(before_row, after_row):>9}  {_meaning(before_row, after_row)}"
        )
    if missing:
        lines.append(f"{missing} measurements of the later run are not in the earlier one")
    return "\n".join(line.rstrip() for line in lines)


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["target"], row["engine"], row["name"]


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


def _describe_run(label: str, run: dict[str, Any]) -> str:
    machine = run["machine"]
    changed = f" and {machine['changed_files']} changed files" if machine["changed_files"] else ""
    return (
        f"{label + ':':8}{machine['revision']}{changed}, {machine['at']}, {machine['processor']}, {machine['cores']} cores, "
        f"flush {machine['flush_us']} us, load before {machine['load_before']:.2f}"
    )


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the differences that make the two hard to compare."""
    differences = [
        f"{name}: {before['machine'].get(name)} and {after['machine'].get(name)}"
        for name in ("processor", "cores", "python", "engines")
        if before["machine"].get(name) != after["machine"].get(name)
    ]
    for name, value in after["settings"].items():
        if before["settings"].get(name) != value and name not in ("only", "engines"):
            differences.append(f"setting {name}: {before['settings'].get(name)} and {value}")
    differences += [
        f"{label}: other processes were running"
        for label, run in (("before", before), ("after", after))
        if run["machine"]["load_before"] > 0.5
    ]
    return [f"DIFFERENT: {difference}" for difference in differences]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args()
    print(compare(json.loads(options.before.read_text()), json.loads(options.after.read_text())))


if __name__ == "__main__":
    main()
