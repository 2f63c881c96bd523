"""What is wrong with something that was asked for, in the three parts in which the control door says it."""


class BrokenRule(Exception):
    """Something in a wish cannot be.

    Args:
        field: where, as the control door spells it.
        rule: what is wrong.
        accepted: what would do.
    """

    def __init__(self, field: str, rule: str, accepted: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule
        self.accepted = accepted
