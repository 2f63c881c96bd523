"""Shared foundations: clock, ids, group commit, backoff, encryption and logs. Imports no other package of ours."""
