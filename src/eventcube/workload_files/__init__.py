"""Workload files: read, checked and ready to run."""
