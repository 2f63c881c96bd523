"""Callbacks, subscriptions, and statistics of receivers."""
