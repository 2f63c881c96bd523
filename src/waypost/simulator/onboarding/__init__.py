"""Saving accounts and subscriptions, and in-app signups."""
