"""Trace events and callbacks of subscriptions, emitted when a state changes. Used by several stages."""
