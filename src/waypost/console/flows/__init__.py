"""Pages about Flows: the list of an account's, and the editor with its checks."""
