"""Accounts with what belongs to them: apps, numbers, tokens, flows, records."""
