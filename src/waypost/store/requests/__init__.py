"""State of requests that several processes share: idempotency keys and rate windows."""
