"""Aggregates computed without making matches: how many partial matches are in each stage of a pattern."""
