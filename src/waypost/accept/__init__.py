"""Stage 1 of 6, accept: every door a partner knocks on."""
