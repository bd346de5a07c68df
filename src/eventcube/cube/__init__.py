"""The event cube: how queries relate, and how to move from one to another."""
