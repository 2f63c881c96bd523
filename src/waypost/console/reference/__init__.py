"""Credentials of the signed-in partner for "Try it" in the API reference, which keeps them in its page only."""
