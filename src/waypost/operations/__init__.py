"""Probes, metrics, traces and the API reference of a running service, and the retention of its data."""
