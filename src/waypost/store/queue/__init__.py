"""Jobs of the durable queues, leases, depths, and inbound webhooks."""
