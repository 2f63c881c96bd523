"""Endpoints for templates: create, check, edit, delete, list, synchronise, library, analytics."""
