"""Control API calls for payment configurations."""
