"""Templates on the wire: drafts, records, edits, filters, analytics."""
