"""The onboarding page: a line for each app with what it lacks, and the way of a new one to its first message."""
