"""Messages, what recipients sent, recipients; lists and searches of them."""
