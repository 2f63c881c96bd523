"""Texts of the templates pages: labels, names of languages, and the differences between two versions."""
