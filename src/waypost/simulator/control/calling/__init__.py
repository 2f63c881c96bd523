"""Control API calls for voice calls: calling a business and hanging up as a phone's owner."""
