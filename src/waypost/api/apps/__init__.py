"""Endpoints for apps: lists, settings, additional keys, users."""
