"""Request state that several processes share: idempotency keys and rate windows."""
