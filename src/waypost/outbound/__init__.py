"""The one HTTP client for URLs that others chose."""
