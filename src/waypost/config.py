"""Every setting once: name with unit, type, default, meaning. The only reader of the environment."""

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class Settings(BaseSettings):
    """Settings of the service. Each is also an environment variable with `WAYPOST_` before its name."""

    model_config = SettingsConfigDict(env_prefix="WAYPOST_", extra="ignore", frozen=True)

    data: Path = Field(
        default=Path(".waypost"), description="Folder of the store and of the instance key."
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port of the service; 0 takes a free one."
    )
    public_url: str | None = Field(
        default=None,
        description="Where partners and receivers reach the service; without it host and port.",
    )
    wallet_currency: str = Field(
        default="USD", description="The wallet's currency, shown as set; nobody is charged."
    )
    wallet_balance: float = Field(default=0, description="The wallet's balance, shown as set.")
    wallet_overdraft: float = Field(
        default=0, ge=0, description="The wallet's overdraft limit, shown as set."
    )
    secret_key: str | None = Field(
        default=None,
        description="The instance key: seals secrets, derives app tokens. At least 32 characters.",
    )
    admin_token: str | None = Field(
        default=None,
        description="Credential of the administration door; without it the door is closed.",
    )
    admin_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Further host names under which the administration door may be reached.",
    )
    rates: bool = Field(default=True, description="Whether requests are limited as documented.")
    strict: bool = Field(
        default=False,
        description="Hold templates to the operator's rules at creation, not at its review.",
    )
    per_second: int = Field(
        default=80,
        ge=1,
        le=1000,
        description="Throughput of a source that has none of its own, messages a second.",
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
        default=900,
        ge=0,
        description="How long an uncertain message waits for a status before it fails.",
    )
    hold_events_s: int = Field(
        default=0,
        ge=0,
        le=60,
        description="How long after a message was accepted its callbacks are held back at least.",
    )
    order_hold_s: int = Field(
        default=900,
        ge=0,
        description="How long a refused callback holds up the next ones for the same recipient.",
    )
    allowed_networks: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Networks that callbacks and fetches may reach although they are not public, with commas.",
    )
    operator_timeout_s: float = Field(default=30, gt=0, description="For one call of the operator.")
    stop_within_s: float = Field(
        default=10, ge=0, description="How long a stop waits for what is being sent."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="What is logged."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="How a record is written."
    )

    @field_validator("allowed_networks", "admin_hosts", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("allowed_networks")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network)
        return value

    @field_validator("secret_key")
    @classmethod
    def _long_enough(cls, value: str | None) -> str | None:
        if value is not None and len(value) < 32:
            raise ValueError(
                "secret_key must have at least 32 characters; 64 random hex digits are best"
            )
        return value

    @field_validator("public_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("public_url must be an http or https address")
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
