"""One module for each step from one revision of the store to the next; a step that is released never changes."""
