"""Queries of the console: the overview of an app, and message traces."""
