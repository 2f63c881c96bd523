"""Messages of a business: checked, taken, shown, and what becomes of them; and reviews, which wait like them."""
