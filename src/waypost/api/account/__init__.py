"""Endpoints for the account of an app: wallet, usage, business profile, numbers."""
