"""Control API calls for groups: joining, leaving, reading and writing as a phone's owner."""
