"""Files with an id or a handle, and what may be referred to."""
