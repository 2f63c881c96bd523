"""Check of settings before real traffic."""

from importlib.util import find_spec

from waypost.assembly.dev import demo
from waypost.base.extras import install_command
from waypost.config import STAGES, Settings


class InvalidConfiguration(Exception):
    """A setting is missing, public or incompatible with another; the text has a fix hint."""


def check_configuration(settings: Settings) -> None:
    """Return if these settings are fit for real traffic.

    Raises:
        InvalidConfiguration: a setting is missing, public or incompatible with another.
    """
    if settings.secret_key is None:
        raise InvalidConfiguration(
            "secret_key is not set: set WAYPOST_SECRET_KEY to 64 random hex digits "
            "and keep it, because encrypted secrets cannot be decrypted with another one"
        )
    if settings.secret_key == demo.INSTANCE_KEY or settings.admin_token == demo.ADMIN_TOKEN:
        raise InvalidConfiguration("secret_key or admin_token is the demonstration's, which is public; set others")
    check_media_settings(settings)
    if settings.database_url is None and settings.workers > 1:
        raise InvalidConfiguration(
            "an SQLite store supports one process: leave --workers out, "
            "or set WAYPOST_DATABASE_URL to a PostgreSQL database"
        )
    if settings.database_url is None and settings.stages != STAGES:
        raise InvalidConfiguration(
            "an SQLite store supports one process, which runs all stages: leave --stages out, "
            "or set WAYPOST_DATABASE_URL to a PostgreSQL database"
        )


def check_media_settings(settings: Settings) -> None:
    """Return if the settings of the media bucket fit together, and its library is installed.

    Raises:
        InvalidConfiguration: they do not, or it is not.
    """
    if (settings.media_access_key_id is None) != (settings.media_secret_key is None):
        raise InvalidConfiguration(
            "media_access_key_id and media_secret_key belong together: set both, or none of them to use the "
            "credentials of the environment or of the machine's role"
        )
    if settings.media_url is not None and find_spec("obstore") is None:
        raise InvalidConfiguration(
            f"media_url needs the package obstore, which is not installed: {install_command('s3')}"
        )
