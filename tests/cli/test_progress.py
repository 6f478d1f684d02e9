"""The bar on stderr: there while work goes on, out of the way of a mistake."""

from __future__ import annotations

import pytest

from robot_fb.cli import common
from robot_fb.errors import ConfigError


def advance_then_fail(steps: int) -> None:
    with common.progress() as bar:
        shown = bar.add_task("some work", total=2)
        bar.advance(shown, steps)
        raise ConfigError("a mistake")


@pytest.mark.parametrize(("steps", "shown"), [(0, False), (1, True)])
def test_only_a_bar_that_moved_stands_beside_a_mistake(capsys, steps, shown):
    with pytest.raises(ConfigError):
        advance_then_fail(steps)
    printed = capsys.readouterr()
    assert ("some work" in printed.err) is shown and printed.out == ""


def test_the_bar_goes_to_stderr(capsys):
    with common.progress() as bar:
        bar.advance(bar.add_task("some work", total=1))
    printed = capsys.readouterr()
    assert "1/1" in printed.err and printed.out == ""
