"""Routes of the templates pages."""

from typing import Final

from waypost.console.route import Kind, PageRow
from waypost.console.templates import actions, editor, gallery, page, samples

_ALL: Final = "/apps/{app_id}/templates"
_ONE: Final = f"{_ALL}/{{template_id}}"

# fmt: off
TEMPLATES: Final = (
    #       kind       path                        endpoint                what it does
    PageRow(Kind.PAGE, _ALL,                       gallery.show_gallery,   "gallery of templates"),
    PageRow(Kind.LIVE, f"{_ALL}/live",             gallery.live_gallery,   "updates of it"),
    PageRow(Kind.PAGE, f"{_ALL}/new",              editor.show_new,        "editor for a new template"),
    PageRow(Kind.ACT,  f"{_ALL}/new",              editor.write_new,       "preview, check, change or submit it"),
    PageRow(Kind.PART, f"{_ALL}/media/{{media_id}}", samples.show_sample,  "a sample file"),
    PageRow(Kind.PAGE, _ONE,                       page.show_template,     "one template"),
    PageRow(Kind.LIVE, f"{_ONE}/live",             page.live_template,     "updates of it"),
    PageRow(Kind.PAGE, f"{_ONE}/edit",             editor.show_edit,       "editor for an existing template"),
    PageRow(Kind.ACT,  f"{_ONE}/edit",             editor.write_edit,      "preview, check, change or submit it"),
    PageRow(Kind.ACT,  f"{_ONE}/send",             actions.send_template,     "send it"),
    PageRow(Kind.ACT,  f"{_ONE}/delete",           actions.delete_template,   "delete it"),
)
# fmt: on
