"""Personal data of recipients: where it is stored, and its export."""
