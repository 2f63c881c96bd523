"""The templates pages: gallery, one template, and the editor with its linter."""
