"""Endpoints for media: upload, download, and the files behind unguessable URLs."""
