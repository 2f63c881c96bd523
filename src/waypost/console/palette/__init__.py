"""The command palette: its commands, and its search for people and messages."""
