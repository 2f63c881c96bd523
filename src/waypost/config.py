"""The settings: name with unit, type, default, meaning. `waypost.cli.setting_sources` reads them."""

import re
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

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


class Settings(BaseModel):
    """Settings of the service. Each is set by an environment variable, `WAYPOST_` and its name, or in a TOML file."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    data: Path = Field(default=Path(".waypost"), description="Folder of the store and of the instance key.")
    database_url: str | None = Field(
        default=None,
        description="A PostgreSQL database for the store, in libpq's format (several hosts separated by commas); "
        "without it the store is an SQLite file in `data`.",
    )
    database_connections: int | None = Field(
        default=None,
        description=f"Maximum number of connections of each process to PostgreSQL, at least {MIN_CONNECTIONS}; without "
        "it, as many as its stages need.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port of the service; 0 takes a free one.")
    workers: int = Field(
        default=1,
        ge=1,
        le=256,
        description="Number of processes that `serve` starts on this port; more than one needs `database_url`.",
    )
    stages: tuple[str, ...] = Field(
        default=STAGES,
        description="Stages that this process runs, separated by commas; less than all needs `database_url`, "
        "and other processes that run the rest.",
    )
    hold: bool = Field(
        default=False,
        description="Send, call, accept and delete nothing: reading, the console and administration work, so that a "
        "restored store can be inspected.",
    )
    public_url: str | None = Field(
        default=None, description="URL of the service for partners and receivers; without it, host and port."
    )
    wallet_currency: str = Field(default="USD", description="The wallet's currency, shown as set; nothing is charged.")
    wallet_balance: float = Field(default=0, description="The wallet's balance, shown as set.")
    wallet_overdraft: float = Field(default=0, ge=0, description="The wallet's overdraft limit, shown as set.")
    secret_key: str | None = Field(
        default=None, description="The instance key: encrypts secrets, derives app tokens. At least 32 characters."
    )
    old_secret_key: str | None = Field(
        default=None,
        description="The instance key before, while `waypost secret rotate` replaces it. At least 32 characters.",
    )
    admin_token: str | None = Field(
        default=None,
        description="Credential of the admin API; without it the API cannot be used. At least 32 characters.",
    )
    admin_hosts: tuple[str, ...] = Field(
        default=(),
        description="Further host names that the admin API, and everything of `waypost dev`, accepts, separated "
        "by commas.",
    )
    admin_host: str | None = Field(
        default=None, description="Address of the listener on `admin_port`; without it 127.0.0.1."
    )
    admin_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="A separate port for the admin API and `/metrics`, which `port` then does not serve; "
        "worker number n listens on the nth port after it.",
    )
    simulator_url: str | None = Field(
        default=None,
        description="URL of a simulator that `serve` uses as its operator, such as `http://127.0.0.1:8081`: the "
        "console then shows its phones.",
    )
    simulator_token: str | None = Field(
        default=None, description="The control token of that simulator, if it needs one. At least 32 characters."
    )
    show_text: bool = Field(
        default=False,
        description="Show the text of messages to everybody with access to them, without a reveal; one-time codes "
        "stay hidden. The request log then has the text of requests and responses. `waypost dev` shows text unless "
        "this is set to false.",
    )
    rates: bool = Field(
        default=True, description="Apply the rate limits: the documented ones, with the changes of `rate_limits`."
    )
    rate_limits: tuple[str, ...] = Field(
        default=(),
        description="Rates that differ from the documented ones, separated by commas, such as "
        "`templates=20/60s,download=100/1h`: a row of the page of rates, requests, and a period in s, m or h.",
    )
    strict: bool = Field(
        default=False, description="Check templates by the operator's rules at creation, not at its review."
    )
    per_second: int = Field(
        default=80, ge=1, le=1000, description="Throughput of a source without its own setting, messages a second."
    )
    in_flight: int = Field(
        default=64,
        ge=1,
        le=1024,
        description="Messages that are sent to the operator at the same time; a crash makes at most so many uncertain.",
    )
    message_ttl_s: int = Field(
        default=86_400, ge=1, description="A message that the operator has not accepted after so long fails."
    )
    uncertain_for_s: int = Field(
        default=900, ge=0, description="How long an uncertain message waits for a status before it fails."
    )
    hold_events_s: int = Field(
        default=0, ge=0, le=60, description="Minimum time between the acceptance of a message and its callbacks."
    )
    order_hold_s: int = Field(
        default=900, ge=0, description="How long a failed callback delays the next ones for the same recipient."
    )
    pause_callbacks_after_s: int = Field(
        default=432_000, ge=0, description="A subscription whose callbacks fail for so long is paused; 0: never."
    )
    allowed_networks: tuple[str, ...] = Field(
        default=(), description="Private networks that callbacks and downloads may reach, separated by commas."
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=(),
        description="Networks of the proxies in front of the service, separated by commas: "
        "their `X-Forwarded-For` is trusted.",
    )
    header_timeout_s: float = Field(
        default=10,
        gt=0,
        description="A connection without complete headers after so long, in seconds, gets status 408 and is closed.",
    )
    body_timeout_s: float = Field(
        default=30,
        gt=0,
        description="Over each period of so many seconds a request body must arrive at `min_body_rate`, and a response "
        "be read; otherwise the connection is closed, after status 408 for a body.",
    )
    min_body_rate: int = Field(
        default=500,
        ge=0,
        description="Minimum rate of a request body, and of a client that reads, bytes a second; 0: no limit.",
    )
    max_connections: int = Field(
        default=4000,
        ge=0,
        description="Maximum number of connections of one listener of a process; a further one closes the one whose "
        "request arrives most slowly or that has been idle longest, or gets status 503. 0: no limit.",
    )
    max_connections_per_address: int = Field(
        default=256,
        ge=0,
        description="Maximum number of connections of one address, or one IPv6 network of 64 bits, at one "
        "listener; a further one gets status 429. Not for `trusted_proxies`. 0: no limit.",
    )
    reserved_descriptors: int = Field(
        default=256,
        ge=0,
        description="File descriptors of the process that incoming connections cannot use: reserved for the store, "
        "files, the operator and callbacks.",
    )
    operator_timeout_s: float = Field(default=30, gt=0, description="Timeout of one call to the operator.")
    lease_s: float = Field(
        default=10,
        ge=0.5,
        description="If several processes share a store: how long after a process was killed the others take over "
        "its work.",
    )
    drain_s: float = Field(
        default=0,
        ge=0,
        le=3600,
        description="How long `serve` responds to requests after a stop signal while `/readyz` says 503, so that a "
        "proxy can stop sending requests; longer than the proxy keeps idle connections. `stop_within_s` begins after "
        "it.",
    )
    stop_within_s: float = Field(default=10, ge=0, description="How long a stop waits for requests and jobs in flight.")
    metrics_token: str | None = Field(
        default=None,
        description="Credential for `/metrics` only; without it, `/metrics` is open to loopback and to `admin_token`. "
        "At least 32 characters.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="A separate port for `/metrics`; worker number n listens on the nth port after it.",
    )
    least_free_mb: int = Field(
        default=256,
        ge=0,
        description="With less free space than this on the store's disk, the service is not ready and accepts no "
        "files, so that the space is left to the store.",
    )
    media_url: str | None = Field(
        default=None,
        description="A bucket of an S3-compatible server for media files, such as `s3://bucket/prefix`; without it "
        "they are in the folder `media` in `data`. Needs the extra `s3`.",
    )
    media_endpoint: str | None = Field(
        default=None, description="URL of that server, such as `https://s3.example.com`; without it AWS."
    )
    media_region: str = Field(default="us-east-1", description="Region of the bucket.")
    media_access_key_id: str | None = Field(
        default=None,
        description="Id of the access key for the bucket; without it, the credentials of the environment "
        "(`AWS_…`) or of the machine's role.",
    )
    media_secret_key: str | None = Field(default=None, description="The secret of that access key.")
    media_quota_mb: int = Field(
        default=5000,
        ge=0,
        description="Media storage of each partner, in MB of uploads that have not expired; the same content counts "
        "once. 0: no limit.",
    )
    message_quota: int = Field(
        default=DEFAULT_MESSAGE_QUOTA,
        ge=0,
        le=MAX_QUOTA,
        description="Maximum number of messages of each partner that wait for the operator; a further one gets "
        "status 429. 0: no limit. `waypost partner quota` sets it for one partner.",
    )
    callback_quota: int = Field(
        default=DEFAULT_CALLBACK_QUOTA,
        ge=0,
        le=MAX_QUOTA,
        description="Maximum number of callbacks that wait for the receivers of each partner; beyond it, its new "
        "messages get status 429. 0: no limit. `waypost partner quota` sets it for one partner.",
    )
    otel_endpoint: str | None = Field(
        default=None,
        description="Endpoint for spans, by OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. "
        "Needs the extra `otel`.",
    )
    otel_sample_ratio: float = Field(
        default=1,
        ge=0,
        le=1,
        description="Share of the messages that is traced, 1 is all, of those whose request has no `traceparent`; "
        "its sampled flag decides otherwise.",
    )
    upgrade_store: bool = Field(
        default=True,
        description="Upgrade a store of an older version at a start; if false, use `waypost store upgrade`.",
    )
    keep_bodies_days: int = Field(
        default=30,
        ge=1,
        description=(
            "Retention of content: texts of messages, bodies of webhooks, callbacks with their attempts. "
            "PostgreSQL deletes callbacks and webhooks by the week, so up to 7 days later. "
            "Expired and revoked secrets and keys are deleted after the same time."
        ),
    )
    keep_attempts_days: int = Field(
        default=30,
        ge=1,
        description="Retention of the attempts of callbacks; no longer than the callbacks, "
        "and on PostgreSQL up to 7 days longer than set.",
    )
    keep_messages_days: int = Field(
        default=400,
        ge=1,
        description="Retention of messages without their content, and of their states; "
        "on PostgreSQL their traces are kept up to 31 days longer.",
    )
    keep_dedupe_days: int = Field(
        default=8,
        ge=8,
        description="Minimum time for which a repeated webhook is detected; retention of its items too.",
    )
    keep_audit_days: int = Field(default=400, ge=1, description="Retention of the audit log.")
    request_log_days: int = Field(
        default=7, ge=1, description="Retention of the request log; no longer than `keep_bodies_days`."
    )
    request_log_rows: int = Field(
        default=20_000,
        ge=0,
        le=1_000_000,
        description="Maximum number of entries of the request log for each partner; the oldest are deleted. 0: no log.",
    )
    request_log_sample: int = Field(
        default=200,
        ge=0,
        description="One of how many successful requests is in the request log. 0: none. Failed ones are all logged. "
        "`waypost dev` logs all unless this is set.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum level of log records."
    )
    log_format: Literal["text", "json"] = Field(default="text", description="Format of log records.")
    access_log: bool = Field(
        default=False,
        description="Log one record at level `info` for each request: its route, status, duration and client, and "
        "its id, which the response then has in the header `X-Request-Id`.",
    )

    @field_validator("allowed_networks", "admin_hosts", "trusted_proxies", "stages", "rate_limits", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("allowed_networks", "trusted_proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            try:
                ip_network(network)
            except ValueError as error:
                text = f"it must be IP networks such as 10.0.0.0/8, separated by commas; {network!r} is none"
                raise ValueError(text) from error
        return value

    @field_validator("rate_limits", mode="before")
    @classmethod
    def _read_table_of_rates(cls, value: object) -> object:
        """Accept a table of a TOML file too, such as `templates = "20/60s"`."""
        if isinstance(value, Mapping):
            return tuple(f"{name}={rate}" for name, rate in cast("Mapping[object, object]", value).items())
        return value

    @field_validator("rate_limits")
    @classmethod
    def _check_rates(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        change_rates(value)
        return value

    @field_validator("stages")
    @classmethod
    def _check_stages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in STAGES]
        if unknown or not value:
            problem = f"there is no stage {unknown[0]!r}" if unknown else "no stage is given"
            raise ValueError(f"{problem}; give one or more of {', '.join(STAGES)}, separated by commas")
        return tuple(name for name in STAGES if name in value)

    @field_validator("secret_key", "admin_token", "metrics_token", "simulator_token")
    @classmethod
    def _check_length(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value != DEMO_ADMIN_TOKEN:  # `old_secret_key` may be weak: it is being replaced
            check_secret(value, str(info.field_name))
        return value

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("database_url must begin with postgresql://; without it SQLite is used")
        return value

    @field_validator("database_connections")
    @classmethod
    def _check_database_connections(cls, value: int | None) -> int | None:
        if value is not None and value < MIN_CONNECTIONS:
            raise ValueError(
                f"database_connections must be at least {MIN_CONNECTIONS}: one to write, one to read, and two for "
                "notifications; without it a process opens as many as its stages need"
            )
        return value

    @field_validator("media_url")
    @classmethod
    def _check_media_url(cls, value: str | None) -> str | None:
        if value is not None and not _BUCKET_URL.fullmatch(value):
            raise ValueError("media_url must be s3://bucket or s3://bucket/prefix, without credentials and parameters")
        return value

    @field_validator("media_endpoint")
    @classmethod
    def _check_media_endpoint(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("media_endpoint must be an http or https address")
        return None if value is None else value.rstrip("/")

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("public_url must be an http or https address")
        return None if value is None else value.rstrip("/")

    @field_validator("simulator_url")
    @classmethod
    def _check_simulator_url(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("simulator_url must be an http or https address")
        return None if value is None else value.rstrip("/")

    @property
    def address(self) -> str:
        """URL of the service for partners and receivers, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

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
