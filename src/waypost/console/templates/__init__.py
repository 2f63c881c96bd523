"""The pages of templates: the gallery, one template, and the editor with its linter."""
