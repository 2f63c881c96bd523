"""The wire formats: bytes and text to domain values, and back."""
