"""Errors that the guard turns into error pages."""

from collections.abc import Collection


class NotThere(Exception):
    """The object does not exist or belongs to another partner; the response is the same.

    Args:
        what: error sentence for the page.
    """

    def __init__(self, what: str = "Page not found.") -> None:
        super().__init__(what)
        self.what = what


class NotMeant(Exception):
    """The request is one that none of our pages sends, or its form is out of date.

    Args:
        what: what is wrong.
        remedy: what to do.
    """

    def __init__(self, what: str, remedy: str = "Go back, reload the page and try again.") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class NotAdministrator(Exception):
    """The page or action is only for the administrator."""

    what = "Administrator access required: all partners of this service share the simulator."
    remedy = "Enter the admin token under Settings, Administrator."


class NotAllowed(Exception):
    """The path allows other methods only.

    Args:
        method: method of the request.
        allowed: methods that the path allows.
    """

    def __init__(self, method: str, allowed: Collection[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        if method in ("GET", "HEAD"):
            self.what = "There is no page at this address."
            self.remedy = "This address is for a button of the console. Go back and use the button."
        else:
            self.what = f"Method {method[:20]} is not allowed here."
            self.remedy = f"Allowed: {self.allowed}."
        super().__init__(self.what)
