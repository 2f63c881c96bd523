"""The table of rates, and what the setting `rate_limits` and an app's own rates change of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit of requests within a time, and the scope that it applies to."""

    at_most: int
    within_ms: int
    per: str
    source: str
    counts: str = "requests"


RATES: Final = {  # Source: spec, "Limits"; facts 11; decision 0078. One window per route, never shared between routes.
    # name, at most, within, per, source
    "login": Rate(10, 60_000, "e-mail and address", "facts 1.2, 11"),
    "login_address": Rate(60, 60_000, "address or /64", "decision 0072"),
    "login_failures": Rate(10, 60_000, "e-mail and address", "decision 0072; always on", "failed logins"),
    "login_failures_address": Rate(60, 60_000, "address or /64", "decision 0072; always on", "failed logins"),
    "login_failures_email": Rate(200, 60_000, "e-mail", "decision 0072; always on", "failed logins"),
    "admin_failures": Rate(10, 60_000, "address or /64", "decision 0072; always on", "wrong admin tokens"),
    "audited_rejections": Rate(
        100, 60_000, "service", "decision 0074; always on", "entries of the audit log without a valid credential"
    ),
    "app_token": Rate(10, 60_000, "app", "facts 11, with health and capping"),
    "mint_token": Rate(3, 60_000, "partner", "ledger 1.11"),
    "universal_tokens": Rate(30, 60_000, "partner", "ledger 1.11"),
    "app_tokens": Rate(30, 60_000, "app", "ledger 1.11"),
    "create_key": Rate(2, 60_000, "app", "ledger 1.1"),
    "templates": Rate(10, 60_000, "app", "spec, Limits; facts 11: create, list, edit"),
    "send_template": Rate(10, 60_000, "app", "spec, Limits"),
    "session": Rate(20, 1_000, "source", "facts 11; decision 0078"),
    "subscription": Rate(5, 60_000, "app", "facts 4.1, 11"),
    "create_app": Rate(10, 60_000, "partner", "facts 11, `/partner/app`"),
    "delete_app": Rate(20, 60_000, "partner", "facts 11"),
    "callback_url": Rate(10, 60_000, "app", "ledger 1.2, `callbackUrl`"),
    "analytics": Rate(5, 60_000, "app", "ledger 1.5, C15"),
    "analytics_settings": Rate(10, 60_000, "app", "facts 11, template/analytics"),
    "compare": Rate(10, 3_600_000, "app", "ledger 1.5, C15"),
    "template_sync": Rate(1, 3_600_000, "app", "facts 11"),
    "ratings": Rate(10, 60_000, "app", "facts 11: the refresh and its response are ours"),
    "upload": Rate(10, 1_000, "app", "facts 11"),
    "download": Rate(10, 1_000, "app", "ledger 1.6, C29: only invalid calls have a rate of their own"),
    "display_name": Rate(3, 86_400_000, "app", "ledger 1.9"),
    "invalid_media": Rate(20, 3_600_000, "app", "ledger 1.6, C29", "downloads of invalid media ids"),
    "mmlite": Rate(2, 3_600_000, "app", "facts 11"),
    "partner_call": Rate(10, 1_000, "app or partner", "facts 11, every other partner API"),
}

LOGIN_LIMITS: Final = frozenset(name for name in RATES if "login" in name) | {"admin_failures", "audited_rejections"}
"""The rows that protect passwords and the audit log; no setting changes them."""
SETTABLE_RATES: Final = tuple(name for name in RATES if name not in LOGIN_LIMITS)
APP_RATES: Final = tuple(name for name in SETTABLE_RATES if RATES[name].per != "partner")
"""The rows that an app can have values of its own for."""
MAX_REQUESTS: Final = 1_000_000
MAX_PERIOD_S: Final = 86_400
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}
_ENTRY: Final = re.compile(
    r"(?P<name>\w+) *= *(?P<at_most>[0-9]{1,7}) */ *(?P<number>[0-9]{0,5})(?P<unit>[smh])", re.ASCII
)
_EXAMPLE: Final = "templates=20/60s"


def change_rates(entries: Iterable[str]) -> dict[str, Rate]:
    """Return the table of rates with these changes.

    Args:
        entries: each a row, the number of requests and a period in seconds, minutes or hours, such as
            `templates=20/60s`, `download=100/1h` or `upload=50/s`.

    Raises:
        ValueError: an entry is no such text, names no row or one twice, or is out of range; the text says what is
            accepted.
    """
    rates = dict(RATES)
    changed: set[str] = set()
    for entry in entries:
        name, rate = _read_entry(entry)
        if name in changed:
            raise ValueError(f"the rate {name} is set twice; keep one")
        changed.add(name)
        rates[name] = rate
    return rates


def read_app_rates(rates: Mapping[str, str]) -> dict[str, str]:
    """Return an app's own rates in the form in which they are stored, such as `{"templates": "20/60s"}`.

    Args:
        rates: by row, the number of requests and a period, such as `20/1m`.

    Raises:
        ValueError: as `change_rates`, or a row is one that no app has.
    """
    entries = dict(_read_entry(f"{name}={text}") for name, text in rates.items())
    other = next((name for name in entries if name not in APP_RATES), None)
    if other is not None:
        raise ValueError(
            f"the rate {other} is per {RATES[other].per}; an app can have its own of {', '.join(APP_RATES)}"
        )
    return {name: format_rate(rate) for name, rate in entries.items()}


def remove_rates(own: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return an app's own rates without these rows.

    Raises:
        ValueError: a row is one that no app has; the text names those that it can have.
    """
    removed = set(names)
    other = next((name for name in removed if name not in APP_RATES), None)
    if other is not None:
        raise ValueError(f"there is no rate {other} of an app; an app can have its own of {', '.join(APP_RATES)}")
    return {name: text for name, text in own.items() if name not in removed}


@lru_cache(maxsize=1024)
def read_stored_rate(name: str, text: str) -> Rate:
    """Return a rate from its row and its stored text."""
    return _read_entry(f"{name}={text}")[1]


def format_rate(rate: Rate) -> str:
    """Return a rate as settings write it, such as `20/60s`."""
    return f"{rate.at_most}/{rate.within_ms // 1000}s"


def describe_limit(name: str, rates: Mapping[str, Rate], *, on: bool) -> str:
    """Return the sentence of the API reference about the rate of a route: the one in force, and how it was changed.

    Args:
        rates: the rates of the service.
        on: False if the service limits no requests.
    """
    documented, rate = RATES[name], rates[name]
    if not on:
        return f"This service limits no requests; documented: {_format_maximum(documented)} per {documented.per}."
    changed = "" if rate == documented else f", set by this service; documented: {_format_maximum(documented)}"
    return f"At most {_format_maximum(rate)} per {rate.per}{changed}."


def describe_rates(entries: Iterable[str], *, on: bool) -> str:
    """Return one line about the rates that a service starts with."""
    if not on:
        return "off; only failed logins are limited"
    changed = {name: rate for name, rate in change_rates(entries).items() if rate != RATES[name]}
    texts = [f"{name}={format_rate(rate)}" for name, rate in changed.items()]
    return "as documented" + (f", except {', '.join(texts)}" if texts else "")


def _format_maximum(rate: Rate) -> str:
    noun = "request" if rate.at_most == 1 else "requests"
    return f"{rate.at_most} {noun} in {rate.within_ms // 1000} s"


def _read_entry(entry: str) -> tuple[str, Rate]:
    parts = _ENTRY.fullmatch(entry.strip())
    if parts is None:
        raise ValueError(f"{entry!r} is not a rate; write the row, the number of requests and the period: {_EXAMPLE}")
    name, at_most = parts["name"], int(parts["at_most"])
    within_s = int(parts["number"] or 1) * _UNITS_S[parts["unit"]]
    if name not in SETTABLE_RATES:
        near = get_close_matches(name, SETTABLE_RATES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the rates are {', '.join(SETTABLE_RATES)}"
        raise ValueError(f"there is no rate {name} that can be set: {hint}")
    if not (1 <= at_most <= MAX_REQUESTS and 1 <= within_s <= MAX_PERIOD_S):
        raise ValueError(f"{entry!r}: a rate has 1 to {MAX_REQUESTS} requests in 1 to {MAX_PERIOD_S} seconds")
    return name, replace(RATES[name], at_most=at_most, within_ms=within_s * 1000)
