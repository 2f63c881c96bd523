"""Limits on how often a partner may call: rates, and wrong passwords."""
