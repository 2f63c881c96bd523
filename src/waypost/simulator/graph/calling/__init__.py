"""Graph API calls of the Calling API."""
