"""The state that every function works on, in one transaction: accounts, phones, the outbox."""
