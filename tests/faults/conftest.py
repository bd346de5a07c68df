"""The Spark session of the tests that need no process of their own is that of tests/spark."""

from tests.spark.conftest import _compiled, spark

__all__ = ["_compiled", "spark"]
