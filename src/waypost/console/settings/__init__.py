"""The settings pages: account, password, credentials, apps, and the operator of each app."""
