"""The APIs as a whole: the tables of their calls, and the applications that serve them."""
