"""Subscriptions, callbacks and their attempts, receivers, replays."""
