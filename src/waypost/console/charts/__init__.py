"""Charts as SVG made here: pictures with a title and a description, and the same figures as a table behind each."""
