"""Business numbers: registration, names, profile, settings and QR codes."""
