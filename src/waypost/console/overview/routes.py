"""The overview's rows of the route table."""

from typing import Final

from waypost.console.overview import show
from waypost.console.rows import Kind, PageRow

# fmt: off
OVERVIEW: Final = (
    #       kind       path                   endpoint             what it does
    PageRow(Kind.PAGE, "/apps/{app_id}",      show.show_overview,  "what is happening now"),
    PageRow(Kind.LIVE, "/apps/{app_id}/live", show.live_overview,  "and what changes of it"),
)
# fmt: on
