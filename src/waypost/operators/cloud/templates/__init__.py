"""Templates at the Cloud API: request bodies and calls."""
