"""Endpoints for messages: session, template and passthrough messages, read receipts, status."""
