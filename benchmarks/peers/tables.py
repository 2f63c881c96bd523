"""The tables of `docs/explanation/compared-with-peers.md`, from the kept result: `python -m benchmarks.peers.tables`.

After a new result has been copied to `benchmarks/results/peers-2-cores.json`, this writes its tables into the page.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.peers.walk import best_step
from benchmarks.processes import RESULTS

Result = Mapping[str, Any]
KEPT = RESULTS / "peers-2-cores.json"
PAGE = RESULTS.parents[1] / "docs" / "explanation" / "compared-with-peers.md"
_TABLE = re.compile(r"^\|.*\n\|---.*\n(?:\|.*\n)+", re.MULTILINE)
# fmt: off
PERCENTILES = {"p50": "p50_ms", "p90": "p90_ms", "p99": "p99_ms", "p99.9": "p99_9_ms", "max": "max_ms"}
KILL_COLUMNS = {
    "Acknowledged":               "acknowledged",
    "Never at the upstream":      "never_sent",
    "Twice at the upstream":      "sent_twice",
    "Without last notification":  "without_last_notification",
    "Reported as uncertain":      "reported_as_uncertain",
    "Notified twice":             "notified_twice",
}
# fmt: on
NONE = "-"


def all_tables(result: Result) -> dict[str, str]:
    """Return every table of the page, by its subject."""
    common = common_rate(result)
    return {
        "versions": _versions(result),
        "saturation": _saturation(result),
        "acknowledged": _percentiles(result, "acknowledged", best_steps(result)),
        "notified": _percentiles(result, "notified", best_steps(result)),
        "at the same rate": _same_rate(result, common),
        "durability": _durability(result),
        "load generator": _load_generator(result),
    }


def best_steps(result: Result) -> dict[str, Result | None]:
    """Return the step with the highest sustained rate of each product."""
    return {product["id"]: best_step(product.get("steps", [])) for product in result["products"]}


def common_rate(result: Result) -> int:
    """Return the highest rate that every measured product kept up with; 0 if there is none."""
    sustained: list[set[int]] = [
        {step["per_second"] for step in product["steps"] if step["keeps_up"]}
        for product in result["products"]
        if "steps" in product
    ]
    return (
        max((rate for rate in sustained[0] if all(rate in each for each in sustained)), default=0) if sustained else 0
    )


def _versions(result: Result) -> str:
    rows = [
        (product["name"], product.get("version", NONE), product.get("store", NONE), product.get("upstream", NONE))
        for product in result["products"]
    ]
    return _table(("Product", "Version", "Store or brokers", "Upstream"), rows)


def _saturation(result: Result) -> str:
    head = (
        "Product",
        "Keeps up with, a second",
        "Falls behind at",
        "µs of processor a message",
        "of the upstream",
        "Processor used by others",
    )
    rows: list[Sequence[str]] = []
    for product in result["products"]:
        steps = product.get("steps", [])
        best = best_step(steps)
        rate = f"{best['per_second']:,}" if best else NONE
        others = f"{best['others_share']:.0%}" if best else NONE
        rows.append((product["name"], rate, _first_failure(steps, best), *_cpu(best), others))
    return _table(head, rows)


def _first_failure(steps: Sequence[Result], best: Result | None) -> str:
    """Return the lowest missed rate above the best one."""
    least = best["per_second"] if best else 0
    missed = [step["per_second"] for step in steps if not step["keeps_up"] and step["per_second"] > least]
    return f"{min(missed):,}" if missed else NONE


def _cpu(step: Result | None) -> tuple[str, str]:
    if step is None:
        return NONE, NONE
    cpu = step["cpu_us_per_message"]
    own = f"{cpu['product'] + cpu.get('store', 0):,}"
    return f"{own} (of it in the store {cpu['store']:,})" if cpu.get("store") else own, f"{cpu['upstream']:,}"


def _percentiles(result: Result, measured: str, steps: Mapping[str, Result | None]) -> str:
    rows = [
        (product["name"], f"{step['per_second']:,}", *(_ms(step[measured].get(key)) for key in PERCENTILES.values()))
        for product in result["products"]
        if (step := steps[product["id"]]) is not None
    ]
    return _table(("Product", "At, a second", *PERCENTILES), rows)


def _same_rate(result: Result, rate: int) -> str:
    head = (
        f"Product, at {rate} a second",
        "Acknowledged p50",
        "p99",
        "Last notification p50",
        "p99",
        "µs of processor",
    )
    rows = [
        (
            product["name"],
            *(
                _ms(step[measured].get(key))
                for measured in ("acknowledged", "notified")
                for key in ("p50_ms", "p99_ms")
            ),
            _cpu(step)[0],
        )
        for product in result["products"]
        for step in product.get("steps", [])
        if step["per_second"] == rate
    ]
    return _table(head, rows)


def _durability(result: Result) -> str:
    rows: list[Sequence[str]] = []
    for product in result["products"]:
        if "kill" in product:
            flushes = product.get("flushes")
            counts = [f"{product['kill'][key]:,}" for key in KILL_COLUMNS.values()]
            rows.append((product["name"], f"{flushes['per_message']:.2f}" if flushes else NONE, *counts))
    return _table(("Product", "Flushes a message", *KILL_COLUMNS), rows)


def _load_generator(result: Result) -> str:
    rows = [
        (
            f"{step['per_second']:,}",
            f"{step['acknowledged_per_s']:,.0f}",
            *(_ms(step["late"].get(key)) for key in ("p50_ms", "p99_ms")),
            *(_ms(step["acknowledged"].get(key)) for key in ("p50_ms", "p99_ms")),
        )
        for step in result["bare"]
    ]
    return _table(("Offered", "Acknowledged", "Sent late p50", "p99", "Acknowledged after p50", "p99"), rows)


def _ms(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(_lines(head, rows))


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def update_page(text: str, result: Result) -> str:
    """Return the page with the tables of a result in place of those with the same columns, in their order."""
    tables = list(all_tables(result).values())

    def replace(match: re.Match[str]) -> str:
        for table in tables:
            if _columns(table) == _columns(match[0]):
                tables.remove(table)
                return table + "\n"
        return match[0]

    return _TABLE.sub(replace, text)


def _columns(table: str) -> str:
    """Return the head of a table without its numbers: one of them is a rate."""
    return re.sub(r"[\d,]+ a second", "", table.partition("\n")[0])


if __name__ == "__main__":
    PAGE.write_text(update_page(PAGE.read_text(), json.loads(KEPT.read_text())))
