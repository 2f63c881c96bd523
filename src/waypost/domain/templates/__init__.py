"""Templates: fields, types, rules, buttons, cards, variables, rendering."""
