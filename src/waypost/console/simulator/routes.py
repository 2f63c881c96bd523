"""Routes of the simulator pages."""

from dataclasses import replace
from typing import Final

from waypost.console.route import Kind, PageRow
from waypost.console.simulator import clock, fault_forms, faults, fleets, reviews, rules, snapshots, template_actions
from waypost.console.simulator.context import with_simulator

# fmt: off
_ROWS: Final = (
    #       kind       path                                          endpoint                       what it does
    PageRow(Kind.PAGE, "/simulator",                                 reviews.show_reviews,          "template reviews"),
    PageRow(Kind.LIVE, "/simulator/live",                            reviews.live_reviews,          "updates of it"),
    PageRow(Kind.ACT,  "/simulator/templates/{template_id}/{act}",   template_actions.act_on_template, "an action of the operator on a template"),
    PageRow(Kind.PAGE, "/simulator/faults",                          faults.show_faults,            "armed faults, presets and kinds"),
    PageRow(Kind.LIVE, "/simulator/faults/live",                     faults.live_faults,            "updates of it"),
    PageRow(Kind.PAGE, "/simulator/faults/new/{on}/{kind}",          fault_forms.show_form,         "form of one kind of fault"),
    PageRow(Kind.ACT,  "/simulator/faults/new/{on}/{kind}",          fault_forms.arm,               "arm the fault of the form"),
    PageRow(Kind.ACT,  "/simulator/faults/presets/{key}",            faults.arm_recipe,             "arm a preset"),
    PageRow(Kind.ACT,  "/simulator/faults/json",                     faults.arm_json,               "arm a fault given as JSON"),
    PageRow(Kind.PAGE, "/simulator/faults/{fault_id}",               faults.show_fault,             "one fault with its last firings"),
    PageRow(Kind.LIVE, "/simulator/faults/{fault_id}/live",          faults.live_fault,             "updates of it"),
    PageRow(Kind.PAGE, "/simulator/clock",                           clock.show_clock,              "the clock, and what is due next"),
    PageRow(Kind.LIVE, "/simulator/clock/live",                      clock.live_clock,              "updates of it"),
    PageRow(Kind.ACT,  "/simulator/clock/next",                      clock.advance_to_next,         "advance it to the next due time"),
    PageRow(Kind.PAGE, "/simulator/fleets",                          fleets.show_fleets,            "fleets, and a form to create one"),
    PageRow(Kind.ACT,  "/simulator/fleets",                          fleets.make_fleet,             "create a fleet"),
    PageRow(Kind.PAGE, "/simulator/fleets/{name}",                   fleets.show_fleet,             "one fleet with its statistics"),
    PageRow(Kind.LIVE, "/simulator/fleets/{name}/live",              fleets.live_fleet,             "updates of it"),
    PageRow(Kind.PAGE, "/simulator/snapshots",                       snapshots.show_snapshots,      "list of snapshots"),
    PageRow(Kind.ACT,  "/simulator/snapshots",                       snapshots.save,                "save a snapshot"),
    PageRow(Kind.PART, "/simulator/snapshots/{name}/content",        snapshots.download,            "download a snapshot"),
    PageRow(Kind.PAGE, "/simulator/rules",                           rules.show_rules,              "settings of the simulated operator"),
    PageRow(Kind.ACT,  "/simulator/rules",                           rules.change_rules,            "change them"),
)
# fmt: on
_ACTIONS: Final = (template_actions.REVIEW_DELAY, *faults.ACTIONS, *clock.ACTIONS, fleets.DROP, *snapshots.ACTIONS)

SIMULATOR: Final = tuple(
    replace(row, endpoint=with_simulator(row.kind, row.endpoint), is_shared=True, is_audited=row.kind is Kind.ACT)
    for row in (*_ROWS, *(one.page_row for one in _ACTIONS))
)
