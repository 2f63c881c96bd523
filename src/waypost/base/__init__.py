"""What everything may use: the clock, ids, group commit, backoff, seals and logs. Imports nothing of ours."""
