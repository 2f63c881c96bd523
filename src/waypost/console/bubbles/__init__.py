"""Messages and templates as their recipients see them; see `pages/bubbles/bubble.html` for use."""
