"""Stage 3 of 6, dispatch: submissions to the operator, in order, paced, and never twice on a guess."""
