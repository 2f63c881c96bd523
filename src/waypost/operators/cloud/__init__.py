"""The WhatsApp Cloud API, and the simulator that stands in for it."""
