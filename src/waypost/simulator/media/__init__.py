"""Media with an id, uploads with a handle, and the check of references to them."""
