"""Figures, taken on this machine and told with it. `make bench` runs them; README.md says what they mean."""
