"""Endpoints for onboarding: links, apps for numbers, registration, and the linking of customers' apps."""
