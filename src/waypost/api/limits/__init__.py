"""Rate limits of the partner API, and limits of failed logins."""
