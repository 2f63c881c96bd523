"""Request bodies of messages at the Cloud API."""
