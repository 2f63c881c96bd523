"""Credentials of partners: login, partner tokens, app tokens and API keys."""
