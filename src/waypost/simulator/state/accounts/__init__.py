"""Accounts and their apps, numbers, tokens, flows and records."""
