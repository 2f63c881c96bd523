"""Phones as they are used: what their people do, by hand or by script."""
