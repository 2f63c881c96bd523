"""Messages and templates as the person who gets them sees them; `pages/bubbles/bubble.html` says how they are used."""
