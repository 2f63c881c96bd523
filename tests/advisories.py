"""`make advisories`: checks the pins of `constraints.txt` against the database of advisories at osv.dev.

Where the database cannot be reached, it says so in one line and the status is 0: a change is not held up by a network.
"""

import argparse
import json
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any, Final

PINS: Final = Path(__file__).resolve().parents[1] / "constraints.txt"
DATABASE: Final = "https://api.osv.dev"
TIMEOUT_S: Final = 20
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;#]+)", re.MULTILINE)


def main() -> int:
    """Print each pin with a published advisory. The status is 1 if there is one."""
    parser = argparse.ArgumentParser(prog="make advisories", description=__doc__)
    parser.add_argument("--database", default=DATABASE, help="address of the database")
    parser.add_argument("--pins", type=Path, default=PINS, help="file of pins")
    arguments = parser.parse_args()
    pins = _PIN.findall(arguments.pins.read_text(encoding="utf-8"))
    try:
        advisories = find_advisories(arguments.database, pins)
    except (OSError, ValueError, LookupError) as error:
        print(f"the pins were not checked: {arguments.database} cannot be reached or read ({type(error).__name__})")
        return 0
    for (name, version), ids in advisories.items():
        print(f"{name} {version} has {', '.join(ids)}", file=sys.stderr)
    print(f"{len(pins)} pins checked, {len(advisories)} with an advisory")
    return int(bool(advisories))


def find_advisories(database: str, pins: list[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """Return the ids of the advisories of each pin that has any.

    Raises:
        OSError: the database cannot be reached.
        ValueError: its response is not JSON.
        LookupError: it is of another shape.

    The call is https://google.github.io/osv.dev/post-v1-querybatch/.
    """
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pins]
    request = urllib.request.Request(
        f"{database}/v1/querybatch",
        data=json.dumps({"queries": queries}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        results: list[dict[str, Any]] = json.load(response)["results"]
    if len(results) != len(pins):
        raise LookupError("a result for each pin")
    found = {pin: [entry["id"] for entry in result.get("vulns", [])] for pin, result in zip(pins, results, strict=True)}
    return {pin: ids for pin, ids in found.items() if ids}


if __name__ == "__main__":
    sys.exit(main())
