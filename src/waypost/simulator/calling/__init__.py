"""Calls from phones to business numbers, and the setting `calling`: signaling only, without media."""
