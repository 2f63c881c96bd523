"""Flows of business accounts: drafts, their JSON text, and publishing. Source: the operator's page "Flows API"."""
