"""The only package that chooses engines and adapters and connects components, in pipeline order."""
