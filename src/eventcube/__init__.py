"""Complex event processing for Spark."""
