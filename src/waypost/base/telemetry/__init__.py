"""Logs, trace steps and counters."""
