"""Wire formats of templates: drafts, records, edits, filters and analytics."""
