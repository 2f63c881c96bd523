"""The pages of callbacks: who is told, what was told, how receivers answer, telling it again, and verifying it."""
