"""The control door: how the console, scripts and tests see and move what no client of the operator may."""
