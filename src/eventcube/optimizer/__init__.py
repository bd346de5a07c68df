"""The optimizer: statistics, costs and choices. It knows plans and numbers, and no events."""
