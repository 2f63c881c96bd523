"""Is everything in place? Each module looks at one thing and gives findings, each with its remedy."""
