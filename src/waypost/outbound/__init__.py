"""The one client for addresses that others chose."""
