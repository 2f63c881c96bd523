"""Pages of callbacks: subscriptions, deliveries, response times, replays, and signature verification."""
