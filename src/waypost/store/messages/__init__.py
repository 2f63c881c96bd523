"""Messages, inbound messages, recipients; lists and searches of them."""
