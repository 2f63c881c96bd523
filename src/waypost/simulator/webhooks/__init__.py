"""Telling a business: updates with due times, signed and delivered."""
