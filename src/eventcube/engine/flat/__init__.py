"""Strategies for sequences of events: event by event, by clusters of events, from kept partial matches."""
