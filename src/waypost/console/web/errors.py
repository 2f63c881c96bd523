"""Errors of the console's endpoints that become error pages."""

from collections.abc import Collection


class NotFound(Exception):
    """The object does not exist or belongs to another partner; the response is the same."""

    def __init__(self, text: str = "Page not found.") -> None:
        super().__init__(text)
        self.text = text


class InvalidPageRequest(Exception):
    """The request is one that none of our pages sends, or its form is out of date."""

    def __init__(self, text: str, hint: str = "Go back, reload the page and try again.") -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


class AdministratorRequired(Exception):
    """The page or action is only for the administrator."""

    text = "Administrator access required: this concerns all partners of the service."
    hint = "Enter the admin token under Settings, Administrator."


class MethodNotAllowed(Exception):
    """The path allows other methods only."""

    def __init__(self, method: str, allowed: Collection[str]) -> None:
        self.allowed = ", ".join(sorted(allowed))
        if method in ("GET", "HEAD"):
            self.text = "There is no page at this address."
            self.hint = "This address is for a button of the console. Go back and use the button."
        else:
            self.text = f"Method {method[:20]} is not allowed here."
            self.hint = f"Allowed: {self.allowed}."
        super().__init__(self.text)
