"""Control API: the console, scripts and tests inspect and change what clients of the operator cannot."""
