"""What is raised when there is nothing to show, or the request cannot be meant."""

from collections.abc import Collection


class NotThere(Exception):
    """There is no such thing, or it is another partner's: the answer is the same.

    Args:
        what: in one sentence, for the page that says so.
    """

    def __init__(self, what: str = "There is nothing at this address.") -> None:
        super().__init__(what)
        self.what = what


class NotMeant(Exception):
    """A form that no page of ours sends, or not any more.

    Args:
        what: what is wrong with it.
        remedy: what to do.
    """

    def __init__(self, what: str, remedy: str = "Go back, reload the page and try again.") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class NotAdministrator(Exception):
    """A page or an act that is for the administrator."""

    what = "This is for the administrator: all partners of this service share the simulator."
    remedy = "Give the admin token under Settings, Administrator."


class NotAllowed(Exception):
    """An address that takes other methods.

    Args:
        method: that it was asked by.
        allowed: that it takes.
    """

    def __init__(self, method: str, allowed: Collection[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        if method in ("GET", "HEAD"):
            self.what = "There is no page at this address."
            self.remedy = "A button of the console does something here. Go back and use the button."
        else:
            self.what = f"This address takes no {method[:20]} requests."
            self.remedy = f"It takes {self.allowed}."
        super().__init__(self.what)
