"""Waypost: a messaging and template service that a business runs itself."""

__version__ = "0.1.0"
