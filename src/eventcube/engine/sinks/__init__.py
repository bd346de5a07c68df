"""Sinks: what becomes of the matches of a query, one file each."""
