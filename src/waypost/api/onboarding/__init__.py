"""Endpoints of onboarding: registration and synchronisation of a number, data for sign-up, links, apps for accounts."""
