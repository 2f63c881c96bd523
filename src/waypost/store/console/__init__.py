"""Reads that only people look at: the overview of an app, and the trace of a message."""
