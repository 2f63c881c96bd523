"""Webhooks to businesses: updates with due times, signed and delivered, optionally changed by faults."""
