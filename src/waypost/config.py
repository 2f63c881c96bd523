"""Every setting once: name with unit, type, default, meaning. The only reader of the environment."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

STAGES: Final = ("api", "dispatch", "events", "callbacks")
"""What a process of the service may be given to do."""


MIN_SECRET_CHARS: Final = 32
"""Of every token and key that opens the service; 32 hex digits have 128 bits."""
DEMO_ADMIN_TOKEN: Final = "demo-admin-token"  # noqa: S105  known to everybody; `serve` refuses it


def check_secret(value: str, name: str) -> None:
    """Return when a token or key is long enough.

    Raises:
        ValueError: it is too short; the text says what would do, and not what was given.
    """
    if len(value) < MIN_SECRET_CHARS:
        raise ValueError(f"{name} must have at least {MIN_SECRET_CHARS} characters; 64 random hex digits are best")


class Settings(BaseSettings):
    """Settings of the service. Each is also an environment variable with `WAYPOST_` before its name."""

    model_config = SettingsConfigDict(env_prefix="WAYPOST_", extra="ignore", frozen=True)

    data: Path = Field(default=Path(".waypost"), description="Folder of the store and of the instance key.")
    database_url: str | None = Field(
        default=None,
        description="A PostgreSQL database for the store, as libpq takes it (several hosts with commas); "
        "without it the store is an SQLite file in `data`.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port of the service; 0 takes a free one.")
    workers: int = Field(
        default=1,
        ge=1,
        le=256,
        description="How many processes `serve` starts on this port; more than one needs `database_url`.",
    )
    stages: Annotated[tuple[str, ...], NoDecode] = Field(
        default=STAGES,
        description="What this process does, with commas; less than all needs `database_url`, "
        "and other processes that do the rest.",
    )
    hold: bool = Field(
        default=False,
        description="Send nothing, call nobody, accept nothing new and delete nothing: reading, the console and "
        "administration work, so that a restored store can be looked at.",
    )
    public_url: str | None = Field(
        default=None, description="Where partners and receivers reach the service; without it host and port."
    )
    wallet_currency: str = Field(default="USD", description="The wallet's currency, shown as set; nobody is charged.")
    wallet_balance: float = Field(default=0, description="The wallet's balance, shown as set.")
    wallet_overdraft: float = Field(default=0, ge=0, description="The wallet's overdraft limit, shown as set.")
    secret_key: str | None = Field(
        default=None, description="The instance key: seals secrets, derives app tokens. At least 32 characters."
    )
    admin_token: str | None = Field(
        default=None, description="Credential of the admin API; without it nobody can use it. At least 32 characters."
    )
    admin_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Further host names under which the admin API, and everything of `waypost dev`, may be "
        "reached, with commas.",
    )
    admin_host: str | None = Field(
        default=None, description="Address of the listener that `admin_port` opens; without it 127.0.0.1."
    )
    admin_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="A port of its own for the admin API and `/metrics`, which `port` then serves no more; "
        "worker number n listens on the n-th after it.",
    )
    simulator_url: str | None = Field(
        default=None,
        description="Where a simulator answers that stands behind `serve`, such as `http://127.0.0.1:8081`: "
        "the console then shows its phones.",
    )
    simulator_token: str | None = Field(
        default=None, description="The control token of that simulator, where it needs one. At least 32 characters."
    )
    show_text: bool = Field(
        default=False,
        description="Whether the text of messages is shown to everybody who may see them, without a reveal; one-time codes "
        "are hidden all the same. `waypost dev` shows text unless this is set to false.",
    )
    rates: bool = Field(default=True, description="Whether requests are limited as documented.")
    strict: bool = Field(
        default=False, description="Hold templates to the operator's rules at creation, not at its review."
    )
    per_second: int = Field(
        default=80, ge=1, le=1000, description="Throughput of a source that has none of its own, messages a second."
    )
    in_flight: int = Field(
        default=64,
        ge=1,
        le=1024,
        description="How many messages are being sent to the operator at once; a crash makes no more uncertain.",
    )
    message_ttl_s: int = Field(
        default=86_400, ge=1, description="A submission that stays unavailable for so long fails."
    )
    uncertain_for_s: int = Field(
        default=900, ge=0, description="How long an uncertain message waits for a status before it fails."
    )
    hold_events_s: int = Field(
        default=0,
        ge=0,
        le=60,
        description="How long after a message was accepted its callbacks are held back at least.",
    )
    order_hold_s: int = Field(
        default=900, ge=0, description="How long a refused callback holds up the next ones for the same recipient."
    )
    pause_callbacks_after_s: int = Field(
        default=432_000, ge=0, description="A subscription whose address takes nothing for so long is paused; 0: never."
    )
    allowed_networks: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Networks that callbacks and fetches may reach although they are not public, with commas.",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Networks of the proxies in front of the service, with commas: "
        "what they write into `X-Forwarded-For` is believed.",
    )
    header_timeout_s: float = Field(
        default=10,
        gt=0,
        description="A connection on which no complete headers have arrived after so long, in seconds, is "
        "answered 408 and closed.",
    )
    body_timeout_s: float = Field(
        default=30,
        gt=0,
        description="Over each period of so many seconds a request body must arrive at `min_body_rate`; "
        "else it is answered 408 and its connection closed.",
    )
    min_body_rate: int = Field(
        default=500, ge=0, description="The lowest rate of a request body, bytes a second; 0: no limit."
    )
    max_connections: int = Field(
        default=4000,
        ge=0,
        description="How many connections one listener of a process serves at once; a further one closes the "
        "one that has been idle longest, or is answered 503. 0: no limit.",
    )
    max_connections_per_address: int = Field(
        default=256,
        ge=0,
        description="How many connections one address, or one IPv6 network of 64 bits, may have open at one "
        "listener; a further one is answered 429. Not for `trusted_proxies`. 0: no limit.",
    )
    reserved_descriptors: int = Field(
        default=256,
        ge=0,
        description="How many of the process's file descriptors no incoming connection takes: for the store, "
        "files, the operator and callbacks.",
    )
    operator_timeout_s: float = Field(default=30, gt=0, description="For one call of the operator.")
    lease_s: float = Field(
        default=10,
        ge=0.5,
        description="Where several processes share a store: how long after a process was killed the others "
        "take over its work.",
    )
    stop_within_s: float = Field(default=10, ge=0, description="How long a stop waits for what is being sent.")
    metrics_token: str | None = Field(
        default=None,
        description="Credential that opens `/metrics` and nothing else; without it loopback and `admin_token` do. "
        "At least 32 characters.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="A port of its own for `/metrics`; worker number n listens on the n-th after it.",
    )
    least_free_mb: int = Field(
        default=256,
        ge=0,
        description="With less room than this on the disk beside the store the service is not ready, and accepts "
        "no files, so that the store keeps it.",
    )
    media_quota_mb: int = Field(
        default=5000,
        ge=0,
        description="How much media each partner may have stored, in MB of what it uploaded and what has not "
        "expired; the same content counts once. 0: no limit.",
    )
    otel_endpoint: str | None = Field(
        default=None,
        description="Where spans go, by OTLP over HTTP: `http://127.0.0.1:4318/v1/traces` for example. "
        "Needs `waypost[otel]`.",
    )
    otel_share: float = Field(default=1, ge=0, le=1, description="Which share of the messages is traced; 1 is all.")
    upgrade_store: bool = Field(
        default=True,
        description="Whether a start upgrades a store of an older version; without it `waypost store upgrade` does.",
    )
    keep_bodies_days: int = Field(
        default=30,
        ge=1,
        description=(
            "How long words are kept: those of messages, webhooks' bodies, callbacks with their attempts. "
            "PostgreSQL drops callbacks and webhooks a week at a time, so up to 7 days later. "
            "Secrets and keys that have run out or were revoked are forgotten after as long."
        ),
    )
    keep_attempts_days: int = Field(
        default=30,
        ge=1,
        description="How long the attempts of callbacks are kept; no longer than the callbacks, "
        "and on PostgreSQL up to 7 days longer than set.",
    )
    keep_messages_days: int = Field(
        default=400,
        ge=1,
        description="How long it is kept which messages there were, and their states; "
        "on PostgreSQL their traces up to 31 days longer.",
    )
    keep_dedupe_days: int = Field(
        default=8,
        ge=8,
        description="How long a webhook that comes again is known at least; its items are kept so long too.",
    )
    keep_audit_days: int = Field(default=400, ge=1, description="How long entries of the audit log are kept.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="What is logged.")
    log_format: Literal["text", "json"] = Field(default="text", description="How a record is written.")

    @field_validator("allowed_networks", "admin_hosts", "trusted_proxies", "stages", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("allowed_networks", "trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network)
        return value

    @field_validator("stages")
    @classmethod
    def _known_stages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in STAGES]
        if unknown or not value:
            wrong = f"there is no stage {unknown[0]!r}" if unknown else "no stage is named"
            raise ValueError(f"{wrong}; name one or more of {', '.join(STAGES)}, with commas")
        return tuple(name for name in STAGES if name in value)

    @field_validator("secret_key", "admin_token", "metrics_token", "simulator_token")
    @classmethod
    def _long_enough(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value != DEMO_ADMIN_TOKEN:
            check_secret(value, str(info.field_name))
        return value

    @field_validator("database_url")
    @classmethod
    def _postgresql(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("postgresql://", "postgres://")):
            raise ValueError("database_url must begin with postgresql://; without it SQLite is used")
        return value

    @field_validator("public_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("public_url must be an http or https address")
        return None if value is None else value.rstrip("/")

    @field_validator("simulator_url")
    @classmethod
    def _simulator(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("simulator_url must be an http or https address")
        return None if value is None else value.rstrip("/")

    @property
    def address(self) -> str:
        """Where partners and receivers reach the service, without a slash at its end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def media_folder(self) -> Path:
        """Where the bytes of media are."""
        return self.data / "media"

    @property
    def store_path(self) -> Path:
        """Where the SQLite store is."""
        return self.data / "waypost.db"
