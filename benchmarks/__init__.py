"""Measurements of this machine, reported with it. `make bench` runs them; README.md explains them."""
