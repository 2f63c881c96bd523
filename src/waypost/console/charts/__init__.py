"""Charts as inline SVG with a title and a description, each with its values as a table."""
