"""Phones as they are: who they belong to, what state they are in, and what their scripts will do."""
