"""The settings: name with unit, type, default, meaning. `waypost.cli.setting_sources` reads them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from ipaddress import ip_network
from math import inf
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args, get_origin, get_type_hints

import msgspec

from waypost.domain.partner import DEFAULT_CALLBACK_QUOTA, DEFAULT_MESSAGE_QUOTA, MAX_QUOTA
from waypost.domain.rates import change_rates
from waypost.store.postgresql_connections import MIN_CONNECTIONS, ConnectionBudget, connection_budget

STAGES: Final = ("api", "dispatch", "events", "callbacks")
"""The stages that a process of the service can run."""


MIN_SECRET_CHARS: Final = 32
"""Of every token and key of the service; 32 hex digits have 128 bits."""
MIN_SECRET_VARIETY: Final = 8
"""Different characters of each; of 32 random hex digits one in 28 million has fewer."""
SECRETS: Final = (
    "database_url",
    "secret_key",
    "old_secret_key",
    "admin_token",
    "simulator_token",
    "metrics_token",
    "media_secret_key",
)
"""The settings that are never shown. Each can be read from a file: the setting's name and `_file`."""
_BUCKET_URL: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()/-]*)?")
DEMO_ADMIN_TOKEN: Final = "demo-admin-token"  # noqa: S105  public; `serve` rejects it


PRODUCTION_SETTINGS: Final = {
    "database_url": "names a database, and a sandbox has none",
    "secret_key": "is the instance key of a store with real credentials",
    "old_secret_key": "is the instance key of a store with real credentials",
    "media_url": "names a bucket of real files",
}
"""Settings that only a service with real traffic has, and why: `waypost intercept` does not run beside them."""


def check_secret(value: str, name: str) -> None:
    """Return if a token or key is long enough, and is no run of a few characters.

    Raises:
        ValueError: it is too short or has too few different characters; the text has the rule, and not the value.
    """
    best = "64 random hex digits are best"
    if len(value) < MIN_SECRET_CHARS:
        raise ValueError(f"{name} must have at least {MIN_SECRET_CHARS} characters; {best}")
    if len(set(value)) < MIN_SECRET_VARIETY:
        raise ValueError(f"{name} must have at least {MIN_SECRET_VARIETY} different characters; {best}")


class InvalidSettingValue(ValueError):
    """A setting has a value that it cannot have.

    Attributes:
        name: of the setting.
        rule: what the value must be; without the value, which may be a secret.
    """

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"the setting {name} is invalid: {rule}")
        self.name = name
        self.rule = rule


def setting(default: Any, meaning: str, **bounds: float) -> Any:
    """Return a setting with its default, its meaning and, of a number, its bounds: `ge`, `gt`, `le`."""
    return field(default=default, metadata={"meaning": meaning, "bounds": bounds})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the service. Each is set by an environment variable, `WAYPOST_` and its name, or in a TOML file.

    Raises:
        InvalidSettingValue: a value breaks the rule of its setting. Types and bounds are checked by `convert_settings`.
    """

    data: Path = setting(Path(".waypost"), "Folder of the store and of the instance key.")  # noqa: RUF009  a field
    database_url: str | None = setting(
        None,
        "A PostgreSQL database for the store, in libpq's format (several hosts separated by commas); "
        "without it the store is an SQLite file in `data`.",
    )
    database_connections: int | None = setting(
        None,
        f"Maximum number of connections of each process to PostgreSQL, at least {MIN_CONNECTIONS}; without "
        "it, as many as its stages need.",
    )
    host: str = setting("127.0.0.1", "Address to listen on.")
    port: int = setting(8080, "Port of the service; 0 takes a free one.", ge=0, le=65535)
    workers: int = setting(
        1, "Number of processes that `serve` starts on this port; more than one needs `database_url`.", ge=1, le=256
    )
    stages: tuple[str, ...] = setting(
        STAGES,
        "Stages that this process runs, separated by commas; less than all needs `database_url`, "
        "and other processes that run the rest.",
    )
    hold: bool = setting(
        False,
        "Send, call, accept and delete nothing: reading, the console and administration work, so that a "
        "restored store can be inspected.",
    )
    public_url: str | None = setting(None, "URL of the service for partners and receivers; without it, host and port.")
    wallet_currency: str = setting("USD", "The wallet's currency, shown as set; nothing is charged.")
    wallet_balance: float = setting(0.0, "The wallet's balance, shown as set.")
    wallet_overdraft: float = setting(0.0, "The wallet's overdraft limit, shown as set.", ge=0)
    secret_key: str | None = setting(
        None, "The instance key: encrypts secrets, derives app tokens. At least 32 characters."
    )
    old_secret_key: str | None = setting(
        None, "The instance key before, while `waypost secret rotate` replaces it. At least 32 characters."
    )
    admin_token: str | None = setting(
        None, "Credential of the admin API; without it the API cannot be used. At least 32 characters."
    )
    admin_hosts: tuple[str, ...] = setting(
        (), "Further host names that the admin API, and everything of `waypost dev`, accepts, separated by commas."
    )
    admin_host: str | None = setting(None, "Address of the listener on `admin_port`; without it 127.0.0.1.")
    admin_port: int | None = setting(
        None,
        "A separate port for the admin API and `/metrics`, which `port` then does not serve; "
        "worker number n listens on the nth port after it.",
        ge=1,
        le=65535,
    )
    simulator_url: str | None = setting(
        None,
        "URL of a simulator that `serve` uses as its operator, such as `http://127.0.0.1:8081`: the "
        "console then shows its phones.",
    )
    simulator_token: str | None = setting(
        None, "The control token of that simulator, if it needs one. At least 32 characters."
    )
    show_text: bool | None = setting(
        None,
        "Show the text of messages to everybody with access to them, without a reveal; one-time codes "
        "stay hidden. The request log then has the text of requests and responses. Without it only `waypost dev` "
        "shows text.",
    )
    rates: bool = setting(True, "Apply the rate limits: the documented ones, with the changes of `rate_limits`.")
    rate_limits: tuple[str, ...] = setting(
        (),
        "Rates that differ from the documented ones, separated by commas, such as "
        "`templates=20/60s,download=100/1h`: a row of the page of rates, requests, and a period in s, m or h.",
    )
    strict: bool = setting(False, "Check templates by the operator's rules at creation, not at its review.")
    per_second: int = setting(80, "Throughput of a source without its own setting, messages a second.", ge=1, le=1000)
    in_flight: int = setting(
        64,
        "Messages that are sent to the operator at the same time; a crash makes at most so many uncertain.",
        ge=1,
        le=1024,
    )
    message_ttl_s: int = setting(86_400, "A message that the operator has not accepted after so long fails.", ge=1)
    uncertain_for_s: int = setting(900, "How long an uncertain message waits for a status before it fails.", ge=0)
    onboarding_step_s: int | None = setting(
        None,
        "Minimum duration of each step of an app's onboarding; without it 0, and 2 with `waypost dev`, so that a person "
        "sees the stages.",
        ge=0,
        le=60,
    )
    hold_events_s: int = setting(0, "Minimum time between the acceptance of a message and its callbacks.", ge=0, le=60)
    order_hold_s: int = setting(900, "How long a failed callback delays the next ones for the same recipient.", ge=0)
    pause_callbacks_after_s: int = setting(
        432_000, "A subscription whose callbacks fail for so long is paused; 0: never.", ge=0
    )
    allowed_networks: tuple[str, ...] = setting(
        (), "Private networks that callbacks and downloads may reach, separated by commas."
    )
    trusted_proxies: tuple[str, ...] = setting(
        (), "Networks of the proxies in front of the service, separated by commas: their `X-Forwarded-For` is trusted."
    )
    header_timeout_s: float = setting(
        10.0, "A connection without complete headers after so long, in seconds, gets status 408 and is closed.", gt=0
    )
    body_timeout_s: float = setting(
        30.0,
        "Over each period of so many seconds a request body must arrive at `min_body_rate`, and a response "
        "be read; otherwise the connection is closed, after status 408 for a body.",
        gt=0,
    )
    min_body_rate: int = setting(
        500, "Minimum rate of a request body, and of a client that reads, bytes a second; 0: no limit.", ge=0
    )
    max_connections: int = setting(
        4000,
        "Maximum number of connections of one listener of a process; a further one closes the one whose "
        "request arrives most slowly or that has been idle longest, or gets status 503. 0: no limit.",
        ge=0,
    )
    max_connections_per_address: int = setting(
        256,
        "Maximum number of connections of one address, or one IPv6 network of 64 bits, at one "
        "listener; a further one gets status 429. Not for `trusted_proxies`. 0: no limit.",
        ge=0,
    )
    reserved_descriptors: int = setting(
        256,
        "File descriptors of the process that incoming connections cannot use: reserved for the store, "
        "files, the operator and callbacks.",
        ge=0,
    )
    operator_timeout_s: float = setting(30.0, "Timeout of one call to the operator.", gt=0)
    lease_s: float = setting(
        10.0,
        "If several processes share a store: how long after a process was killed the others take over its work.",
        ge=0.5,
    )
    drain_s: float = setting(
        0.0,
        "How long `serve` responds to requests after a stop signal while `/readyz` says 503, so that a "
        "proxy can stop sending requests; longer than the proxy keeps idle connections. `stop_within_s` begins after "
        "it.",
        ge=0,
        le=3600,
    )
    stop_within_s: float = setting(10.0, "How long a stop waits for requests and jobs in flight.", ge=0)
    metrics_token: str | None = setting(
        None,
        "Credential for `/metrics` only; without it, `/metrics` is open to loopback and to `admin_token`. "
        "At least 32 characters.",
    )
    metrics_port: int | None = setting(
        None, "A separate port for `/metrics`; worker number n listens on the nth port after it.", ge=1, le=65535
    )
    least_free_mb: int = setting(
        256,
        "With less free space than this on the store's disk, the service is not ready and accepts no "
        "files, so that the space is left to the store.",
        ge=0,
    )
    media_url: str | None = setting(
        None,
        "A bucket of an S3-compatible server for media files, such as `s3://bucket/prefix`; without it "
        "they are in the folder `media` in `data`. Needs the extra `s3`.",
    )
    media_endpoint: str | None = setting(None, "URL of that server, such as `https://s3.example.com`; without it AWS.")
    media_region: str = setting("us-east-1", "Region of the bucket.")
    media_access_key_id: str | None = setting(
        None,
        "Id of the access key for the bucket; without it, the credentials of the environment "
        "(`AWS_…`) or of the machine's role.",
    )
    media_secret_key: str | None = setting(None, "The secret of that access key.")
    media_quota_mb: int = setting(
        5000,
        "Media storage of each partner, in MB of uploads that have not expired; the same content counts "
        "once. 0: no limit.",
        ge=0,
    )
    message_quota: int = setting(
        DEFAULT_MESSAGE_QUOTA,
        "Maximum number of messages of each partner that wait for the operator; a further one gets "
        "status 429. 0: no limit. `waypost partner quota` sets it for one partner.",
        ge=0,
        le=MAX_QUOTA,
    )
    callback_quota: int = setting(
        DEFAULT_CALLBACK_QUOTA,
        "Maximum number of callbacks that wait for the receivers of each partner; beyond it, its new "
        "messages get status 429. 0: no limit. `waypost partner quota` sets it for one partner.",
        ge=0,
        le=MAX_QUOTA,
    )
    otel_endpoint: str | None = setting(
        None,
        "Endpoint for spans, by OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. Needs the extra `otel`.",
    )
    otel_sample_ratio: float = setting(
        1.0,
        "Share of the messages that is traced, 1 is all, of those whose request has no `traceparent`; "
        "its sampled flag decides otherwise.",
        ge=0,
        le=1,
    )
    upgrade_store: bool = setting(
        True, "Upgrade a store of an older version at a start; if false, use `waypost store upgrade`."
    )
    keep_bodies_days: int = setting(
        30,
        "Retention of content: texts of messages, bodies of webhooks, callbacks with their attempts. "
        "PostgreSQL deletes callbacks and webhooks by the week, so up to 7 days later. "
        "Expired and revoked secrets and keys are deleted after the same time.",
        ge=1,
    )
    keep_attempts_days: int = setting(
        30,
        "Retention of the attempts of callbacks; no longer than the callbacks, "
        "and on PostgreSQL up to 7 days longer than set.",
        ge=1,
    )
    keep_messages_days: int = setting(
        400,
        "Retention of messages without their content, and of their states; "
        "on PostgreSQL their traces are kept up to 31 days longer.",
        ge=1,
    )
    keep_dedupe_days: int = setting(
        8, "Minimum time for which a repeated webhook is detected; retention of its items too.", ge=8
    )
    keep_audit_days: int = setting(400, "Retention of the audit log.", ge=1)
    request_log_days: int = setting(7, "Retention of the request log; no longer than `keep_bodies_days`.", ge=1)
    request_log_rows: int = setting(
        20_000,
        "Maximum number of entries of the request log for each partner; the oldest are deleted. 0: no log.",
        ge=0,
        le=1_000_000,
    )
    request_log_sample: int | None = setting(
        None,
        "One of how many successful requests is in the request log. 0: none. Failed ones are all logged. Without it "
        "200, and 1 of `waypost dev`.",
        ge=0,
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting("info", "Minimum level of log records.")
    log_format: Literal["text", "json"] = setting("text", "Format of log records.")
    access_log: bool = setting(
        False,
        "Log one record at level `info` for each request: its route, status, duration and client, and "
        "its id, which the response then has in the header `X-Request-Id`.",
    )

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                try:
                    object.__setattr__(self, name, check(value))
                except ValueError as error:
                    raise InvalidSettingValue(name, str(error)) from error

    @property
    def address(self) -> str:
        """URL of the service for partners and receivers, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def sampled_one_in(self) -> int:
        """One of how many successful requests is in the request log; 0: none."""
        return 200 if self.request_log_sample is None else self.request_log_sample

    @property
    def connection_budget(self) -> ConnectionBudget:
        """Connections of one process to PostgreSQL."""
        return connection_budget(self.stages, at_most=self.database_connections)

    @property
    def media_folder(self) -> Path:
        """Folder of media files."""
        return self.data / "media"

    @property
    def store_path(self) -> Path:
        """File of the SQLite store."""
        return self.data / "waypost.db"


SETTINGS: Final = {one.name: one for one in fields(Settings)}
_TYPES: Final = get_type_hints(Settings)
_BOUNDS: Final = {"ge": "at least", "gt": "more than", "le": "at most"}
_KINDS: Final[Mapping[object, str]] = {
    tuple[str, ...]: "a list",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "the path of a file or folder",
}
_WORDS: Final = {"yes": True, "on": True, "no": False, "off": False}


def convert_settings(values: Mapping[str, object]) -> Settings:
    """Return settings from texts of variables and members of a TOML file, by name.

    Raises:
        InvalidSettingValue: a value is not of its setting's type or outside its bounds, or breaks its rule.
    """
    return Settings(**{name: _convert_value(name, value) for name, value in values.items()})


def _convert_value(name: str, value: object) -> Any:
    declared = _TYPES[name]
    if declared == tuple[str, ...]:
        if isinstance(value, Mapping):  # a table of a TOML file, such as `templates = "20/60s"`
            value = [f"{key}={one}" for key, one in cast("Mapping[object, object]", value).items()]
        elif isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
    elif declared in (bool, bool | None) and isinstance(value, str):
        value = _WORDS.get(value.lower(), value)
    try:
        converted: Any = msgspec.convert(value, declared, strict=False, dec_hook=_convert_path)
    except msgspec.ValidationError as error:
        raise InvalidSettingValue(name, _describe_values(name)) from error
    if isinstance(converted, int | float) and not _is_within(converted, **SETTINGS[name].metadata["bounds"]):
        raise InvalidSettingValue(name, f"it must be {_describe_bounds(name) or 'a finite number'}")
    return converted


def _is_within(value: float, ge: float = -inf, gt: float = -inf, le: float = inf) -> bool:
    """True if a number is finite and within its bounds."""
    return gt < value < inf and ge <= value <= le


def _convert_path(type_: type, value: object) -> object:
    if type_ is Path and isinstance(value, str | Path):
        return Path(value)
    raise ValueError


def _describe_bounds(name: str) -> str:
    return " and ".join(f"{_BOUNDS[bound]} {limit}" for bound, limit in SETTINGS[name].metadata["bounds"].items())


def _describe_values(name: str) -> str:
    """Return what a value must be, by the type and the bounds of its setting."""
    declared, within = _TYPES[name], _describe_bounds(name)
    if get_origin(declared) is Literal:
        *others, last = get_args(declared)
        kind = f"{', '.join(others)} or {last}"
    else:
        kind = next(words for type_, words in _KINDS.items() if type_ in (declared, *get_args(declared)))
    return f"it must be {kind}{', ' if within else ''}{within}"


def _check_networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for network in value:
        try:
            ip_network(network)
        except ValueError as error:
            text = f"it must be IP networks such as 10.0.0.0/8, separated by commas; {network!r} is none"
            raise ValueError(text) from error
    return value


def _check_rates(value: tuple[str, ...]) -> tuple[str, ...]:
    change_rates(value)
    return value


def _check_stages(value: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [name for name in value if name not in STAGES]
    if unknown or not value:
        problem = f"there is no stage {unknown[0]!r}" if unknown else "no stage is given"
        raise ValueError(f"{problem}; give one or more of {', '.join(STAGES)}, separated by commas")
    return tuple(name for name in STAGES if name in value)


def _check_strength(name: str, value: str) -> str:
    if value != DEMO_ADMIN_TOKEN:
        check_secret(value, name)
    return value


def _check_database_url(value: str) -> str:
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError("database_url must begin with postgresql://; without it SQLite is used")
    return value


def _check_database_connections(value: int) -> int:
    if value < MIN_CONNECTIONS:
        raise ValueError(
            f"database_connections must be at least {MIN_CONNECTIONS}: one to write, one to read, and two for "
            "notifications; without it a process opens as many as its stages need"
        )
    return value


def _check_media_url(value: str) -> str:
    if not _BUCKET_URL.fullmatch(value):
        raise ValueError("media_url must be s3://bucket or s3://bucket/prefix, without credentials and parameters")
    return value


def _check_url(name: str, value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError(f"{name} must be an http or https address")
    return value.rstrip("/")


CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "allowed_networks": _check_networks,
    "trusted_proxies": _check_networks,
    "rate_limits": _check_rates,
    "stages": _check_stages,
    "database_url": _check_database_url,
    "database_connections": _check_database_connections,
    "media_url": _check_media_url,
    # not `old_secret_key`, which may be weak: it is being replaced
    **{
        name: partial(_check_strength, name)
        for name in ("secret_key", "admin_token", "metrics_token", "simulator_token")
    },
    **{name: partial(_check_url, name) for name in ("media_endpoint", "public_url", "simulator_url")},
}
"""The rules beyond types and bounds, by setting; each returns the value in its final form."""
