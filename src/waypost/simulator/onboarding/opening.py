"""Opens the window as a page, its configuration and the clock say: version, products and feature.

Source: facts 14.1.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from waypost.base.json_values import list_or_none, object_of
from waypost.base.object_ids import describe_other_kind, make_id
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import view_of
from waypost.simulator.faults.model import FaultSubject, armed_faults, select_fault
from waypost.simulator.onboarding.grants import open_partner_webhooks
from waypost.simulator.onboarding.model import CONFIGURATIONS, LoginConfiguration
from waypost.simulator.onboarding.session import SESSIONS, OnboardingSession, WindowOpening
from waypost.simulator.state.accounts import GraphApp
from waypost.simulator.state.embedded_signup import (
    DEPRECATED_MS,
    FEATURE_ALIASES,
    FEATURES,
    PRODUCTS,
    SESSION_INFO_VERSION,
    SESSION_OPENED,
    VERSIONS,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction


async def open_session(
    state: SimulatorState, app: GraphApp, opening: WindowOpening, *, page_key: str = ""
) -> OnboardingSession:
    """Open the window for an app, and return the session at its first screen.

    Args:
        page_key: as the script has chosen it; empty: a new one.

    Raises:
        ControlApiError: the configuration is unknown or another app's, or the version is unknown.
    """
    configuration = _find_configuration(state, app, opening.config_id)
    given, now_ms, falls_back = opening.extras, state.clock.now_ms(), opening.falls_back
    version = _read_version(given, has_configuration=bool(opening.config_id))
    if falls_back is None:
        falls_back = VERSIONS[version].is_deprecated and now_ms >= DEPRECATED_MS
    reads_products = VERSIONS[version].reads_products
    wants_message = str(given.get("sessionInfoVersion", "")) == str(SESSION_INFO_VERSION)
    session = OnboardingSession(
        **asdict(view_of(WindowOpening, opening)),  # of a whole use of the window only what it is opened with
        session_id=make_id(state.ids, "onboarding session"),
        version=version,
        feature="" if falls_back else _read_feature(given, version, configuration.products if reads_products else ()),
        products=configuration.products if reads_products else ("cloud_api",),
        sends_message=VERSIONS[version].sends_message or wants_message,
        opened_ms=now_ms,
        page_key=page_key or state.ids.secret(),
    )
    await open_partner_webhooks(state, app.app_id)

    def write(transaction: Transaction) -> OnboardingSession:
        opened = session
        if armed_faults(state, "session"):
            subject = FaultSubject(SESSION_OPENED, app=app.app_id, subject=session.session_id)
            fault = select_fault(state, transaction, "session", [subject])
            opened = session if fault is None else replace(session, breaks=(*session.breaks, str(fault.value)))
        transaction.save(SESSIONS, opened, opened.session_id)
        return opened

    return await state.transact(write)


def _find_configuration(state: SimulatorState, app: GraphApp, config_id: str) -> LoginConfiguration:
    if not config_id:
        return LoginConfiguration("", app.app_id)
    configuration = state.values(CONFIGURATIONS).get(config_id)
    if configuration is None or configuration.app_id != app.app_id:
        other = describe_other_kind(config_id, "config_id")
        rule = f"is no login configuration of the app{f': {other}' if other else ''}"
        raise ControlApiError(
            "config_id", rule, "one of PUT /control/onboarding/configurations/{config_id}", status=404
        )
    return configuration


def _read_version(extras: Mapping[str, Any], *, has_configuration: bool) -> str:
    """Return the version that a page asks for; without one the configuration decides: products are for v4 only."""
    version = extras.get("version")
    if version is None:
        return "v4" if has_configuration and "featureType" not in extras else "v2"
    if not isinstance(version, str) or version not in VERSIONS:
        raise ControlApiError("extras.version", f"cannot be {str(version)[:40]!r}", ", ".join(VERSIONS))
    return version


def _read_feature(extras: Mapping[str, Any], version: str, products: tuple[str, ...]) -> str:
    """Return the feature that a page or its configuration asks for; one that the version does not know is ignored."""
    names = [extras.get("featureType"), extras.get("feature_type")]
    names += [object_of(item).get("name") for item in list_or_none(extras.get("features")) or []]
    texts = [FEATURE_ALIASES.get(name, name) for name in names if isinstance(name, str)]
    known = [name for name in texts if name in FEATURES and name and version in FEATURES[name].versions]
    return next(iter([*known, *(PRODUCTS[name].feature for name in products if PRODUCTS[name].feature)]), "")
