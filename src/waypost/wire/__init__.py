"""What is said over HTTP: bytes and text to domain values and back."""
