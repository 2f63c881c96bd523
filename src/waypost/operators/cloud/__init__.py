"""The WhatsApp Cloud API, and the simulator in its place."""
