"""Queries running in this process."""

from eventcube.runtime.runtime import Runtime

__all__ = ["Runtime"]
