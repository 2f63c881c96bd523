"""Actions of phone owners, by hand or by script."""
