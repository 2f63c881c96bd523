"""Accounts, apps and tokens: their calls, and how they are saved; in-app signups."""
