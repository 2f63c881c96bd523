"""Declarations, requests with their files, parameters and errors of the Graph API and the control API."""
