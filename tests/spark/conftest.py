"""One Spark session for all of these tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from eventcube.spark.session import start_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session(
        "local[2]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "4"}, name="tests"
    )
    yield session
    session.stop()
