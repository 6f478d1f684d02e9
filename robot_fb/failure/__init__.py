"""Failure detection: scores of how unlike a success the present is, and the bands that turn scores into alarms."""
