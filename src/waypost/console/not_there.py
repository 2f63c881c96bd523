"""What an endpoint raises when there is nothing to show or the request cannot be meant."""


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
