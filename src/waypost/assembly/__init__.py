"""The one place where engines and adapters are chosen and the parts put together, in street order."""
