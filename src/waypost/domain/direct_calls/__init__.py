"""Direct calls to the operator and their responses, by subject; `call` has what they share."""
