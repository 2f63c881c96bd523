"""Webhooks of the Cloud API: handshake, signature, and reading of items."""
