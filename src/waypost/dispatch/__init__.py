"""Stage 3 of 6, dispatch: outbound jobs to the operator, in order, paced, and never twice on a guess."""
