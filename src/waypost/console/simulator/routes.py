"""Routes of the simulator pages."""

from dataclasses import replace
from typing import Final

from waypost.console.route import PageRoute, RouteKind
from waypost.console.simulator import clock, fault_forms, faults, fleets, reviews, rules, snapshots
from waypost.console.simulator import reviews as template_actions
from waypost.console.simulator.context import require_simulator

_ROWS: Final = (
    # kind, path, endpoint, what it does
    PageRoute(RouteKind.PAGE, "/simulator", reviews.show_reviews, "template reviews"),
    PageRoute(RouteKind.LIVE, "/simulator/live", reviews.live_reviews, "updates of it"),
    PageRoute(
        RouteKind.ACT,
        path="/simulator/templates/{template_id}/{act}",
        endpoint=template_actions.act_on_template,
        does="an action of the operator on a template",
    ),
    PageRoute(RouteKind.PAGE, "/simulator/faults", faults.show_faults, "armed faults, presets and kinds"),
    PageRoute(RouteKind.LIVE, "/simulator/faults/live", faults.live_faults, "updates of it"),
    PageRoute(
        RouteKind.PAGE,
        path="/simulator/faults/new/{on}/{kind}",
        endpoint=fault_forms.show_fault_form,
        does="form of one kind of fault",
    ),
    PageRoute(RouteKind.ACT, "/simulator/faults/new/{on}/{kind}", fault_forms.arm_form, "arm the fault of the form"),
    PageRoute(RouteKind.ACT, "/simulator/faults/presets/{key}", faults.arm_preset, "arm a preset"),
    PageRoute(RouteKind.ACT, "/simulator/faults/presets/{key}/disarm", faults.disarm_preset, "disarm it"),
    PageRoute(RouteKind.ACT, "/simulator/faults/json", faults.arm_json, "arm a fault given as JSON"),
    PageRoute(RouteKind.PAGE, "/simulator/faults/{fault_id}", faults.show_fault, "one fault with its last firings"),
    PageRoute(RouteKind.LIVE, "/simulator/faults/{fault_id}/live", faults.live_fault, "updates of it"),
    PageRoute(RouteKind.PAGE, "/simulator/clock", clock.show_clock, "the clock, and what is due next"),
    PageRoute(RouteKind.LIVE, "/simulator/clock/live", clock.live_clock, "updates of it"),
    PageRoute(RouteKind.ACT, "/simulator/clock/next", clock.advance_to_next, "advance it to the next due time"),
    PageRoute(RouteKind.PAGE, "/simulator/fleets", fleets.show_fleets, "fleets, and a form to create one"),
    PageRoute(RouteKind.ACT, "/simulator/fleets", fleets.create_fleet, "create a fleet"),
    PageRoute(RouteKind.PAGE, "/simulator/fleets/{name}", fleets.show_fleet, "one fleet with its statistics"),
    PageRoute(RouteKind.LIVE, "/simulator/fleets/{name}/live", fleets.live_fleet, "updates of it"),
    PageRoute(RouteKind.PAGE, "/simulator/snapshots", snapshots.show_snapshots, "list of snapshots"),
    PageRoute(RouteKind.ACT, "/simulator/snapshots", snapshots.save_snapshot, "save a snapshot"),
    PageRoute(
        RouteKind.PART,
        path="/simulator/snapshots/{name}/content",
        endpoint=snapshots.download_snapshot,
        does="download a snapshot",
    ),
    PageRoute(RouteKind.PAGE, "/simulator/rules", rules.show_rules, "settings of the simulated operator"),
    PageRoute(RouteKind.ACT, "/simulator/rules", rules.change_rules, "change them"),
)
_ACTIONS: Final = (
    template_actions.REVIEW_DELAY,
    *faults.FAULT_ACTIONS,
    *clock.CLOCK_ACTIONS,
    fleets.DELETE_FLEET,
    *snapshots.SNAPSHOT_ACTIONS,
)

SIMULATOR: Final = tuple(
    replace(
        row, endpoint=require_simulator(row.kind, row.endpoint), is_shared=True, is_audited=row.kind is RouteKind.ACT
    )
    for row in (*_ROWS, *(one.page_row for one in _ACTIONS))
)
