"""The admin API's operations on what the service records: the audit log and the request log."""
