"""The simulator's rows of the route table."""

from dataclasses import replace
from typing import Final

from waypost.console.route import Kind, PageRow
from waypost.console.simulator import clock, fault_forms, faults, fleets, reviews, rules, snapshots, template_actions
from waypost.console.simulator.context import with_simulator

# fmt: off
_ROWS: Final = (
    #       kind       path                                          endpoint                       what it does
    PageRow(Kind.PAGE, "/simulator",                                 reviews.show_reviews,          "templates that wait for a review"),
    PageRow(Kind.LIVE, "/simulator/live",                            reviews.live_reviews,          "and what changes of them"),
    PageRow(Kind.ACT,  "/simulator/templates/{template_id}/{act}",   template_actions.act_on_template, "decide something of a template"),
    PageRow(Kind.PAGE, "/simulator/faults",                          faults.show_faults,            "armed faults, and every kind"),
    PageRow(Kind.LIVE, "/simulator/faults/live",                     faults.live_faults,            "armed faults as they count"),
    PageRow(Kind.PAGE, "/simulator/faults/new/{on}/{kind}",          fault_forms.show_form,         "the form of one kind"),
    PageRow(Kind.ACT,  "/simulator/faults/new/{on}/{kind}",          fault_forms.arm,               "arm what was filled in"),
    PageRow(Kind.ACT,  "/simulator/faults/recipes/{key}",            faults.arm_recipe,             "arm a ready one"),
    PageRow(Kind.ACT,  "/simulator/faults/json",                     faults.arm_json,               "arm what was pasted"),
    PageRow(Kind.PAGE, "/simulator/faults/{fault_id}",               faults.show_fault,             "one fault with its firings"),
    PageRow(Kind.LIVE, "/simulator/faults/{fault_id}/live",          faults.live_fault,             "and what changes of it"),
    PageRow(Kind.PAGE, "/simulator/clock",                           clock.show_clock,              "the clock, and what is due"),
    PageRow(Kind.LIVE, "/simulator/clock/live",                      clock.live_clock,              "and what changes of it"),
    PageRow(Kind.ACT,  "/simulator/clock/next",                      clock.advance_to_next,         "move it to what is due next"),
    PageRow(Kind.PAGE, "/simulator/fleets",                          fleets.show_fleets,            "fleets, and a form for one"),
    PageRow(Kind.ACT,  "/simulator/fleets",                          fleets.make_fleet,             "make one"),
    PageRow(Kind.PAGE, "/simulator/fleets/{name}",                   fleets.show_fleet,             "one with its counts"),
    PageRow(Kind.LIVE, "/simulator/fleets/{name}/live",              fleets.live_fleet,             "and what changes of them"),
    PageRow(Kind.PAGE, "/simulator/snapshots",                       snapshots.show_snapshots,      "what is kept"),
    PageRow(Kind.ACT,  "/simulator/snapshots",                       snapshots.save,                "keep the state as it is"),
    PageRow(Kind.PART, "/simulator/snapshots/{name}/content",        snapshots.download,            "the file of one"),
    PageRow(Kind.PAGE, "/simulator/rules",                           rules.show_rules,              "how the operator behaves"),
    PageRow(Kind.ACT,  "/simulator/rules",                           rules.change_rules,            "have it behave otherwise"),
)
# fmt: on
_ACTIONS: Final = (template_actions.REVIEW_DELAY, *faults.ACTIONS, *clock.ACTIONS, fleets.DROP, *snapshots.ACTIONS)

SIMULATOR: Final = tuple(
    replace(row, endpoint=with_simulator(row.kind, row.endpoint), is_shared=True, is_audited=row.kind is Kind.ACT)
    for row in (*_ROWS, *(one.page_row for one in _ACTIONS))
)
