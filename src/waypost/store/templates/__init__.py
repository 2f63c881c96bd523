"""Templates, their events, samples, analytics, and the gallery."""
