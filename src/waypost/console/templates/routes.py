"""Routes of the templates pages."""

from typing import Final

from waypost.console.route import PageRoute, RouteKind
from waypost.console.templates import draft_text as samples
from waypost.console.templates import editor, gallery, page
from waypost.console.templates import page as actions

_TEMPLATES: Final = "/apps/{app_id}/templates"
_ONE_TEMPLATE: Final = f"{_TEMPLATES}/{{template_id}}"

TEMPLATES: Final = (
    # kind, path, endpoint, what it does
    PageRoute(RouteKind.PAGE, _TEMPLATES, gallery.show_gallery, "gallery of templates"),
    PageRoute(RouteKind.LIVE, f"{_TEMPLATES}/live", gallery.live_gallery, "updates of it"),
    PageRoute(RouteKind.PAGE, f"{_TEMPLATES}/new", editor.show_new, "editor for a new template"),
    PageRoute(RouteKind.ACT, f"{_TEMPLATES}/new", editor.write_new, "preview, check, change or submit it"),
    PageRoute(RouteKind.PART, f"{_TEMPLATES}/media/{{media_id}}", samples.show_sample, "a sample file"),
    PageRoute(RouteKind.PAGE, _ONE_TEMPLATE, page.show_template, "one template"),
    PageRoute(RouteKind.LIVE, f"{_ONE_TEMPLATE}/live", page.live_template, "updates of it"),
    PageRoute(RouteKind.PAGE, f"{_ONE_TEMPLATE}/edit", editor.show_edit, "editor for an existing template"),
    PageRoute(RouteKind.ACT, f"{_ONE_TEMPLATE}/edit", editor.write_edit, "preview, check, change or submit it"),
    PageRoute(RouteKind.ACT, f"{_ONE_TEMPLATE}/send", actions.send_template, "send it"),
    PageRoute(RouteKind.ACT, f"{_ONE_TEMPLATE}/delete", actions.delete_template, "delete it"),
)
