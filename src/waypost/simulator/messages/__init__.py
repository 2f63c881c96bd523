"""Messages of a business: checks, rendering, storage, delivery plans and statuses."""
