"""Stage 2 of 6, queue: durable queues between the stages. A job survives the process that works it."""
