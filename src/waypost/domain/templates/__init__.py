"""Templates: fields, types, rules, buttons, cards, variables and rendering."""
