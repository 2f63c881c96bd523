"""The overview page of an app."""
