"""One Spark session for all of these tests."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from eventcube.engine.warm import uncompiled, warm
from eventcube.spark.columns import ZONE_SETTING
from eventcube.spark.session import start_session


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """A command says that it compiles, if it is the first."""
    if uncompiled():
        warm()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start_session(
        "local[2]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "4"}, name="tests"
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _in_utc(request: pytest.FixtureRequest) -> Iterator[None]:
    """Commands that read files of another zone leave it to the session, which they would have stopped."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").conf.set(ZONE_SETTING, "UTC")
