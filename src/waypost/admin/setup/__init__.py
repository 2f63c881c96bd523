"""Declarative set-up: a document of accounts, partners, apps and subscriptions, compared with the store and applied."""
