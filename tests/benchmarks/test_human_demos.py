"""The human benchmark's ridge regression, against scikit-learn's, and its split."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from robot_fb.benchmarks.human_demos import _ridge_error


def test_ridge_regression_is_the_library_s():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 2))
    x = rng.normal(size=(200, 6)) + 3.0
    y = x @ weights + 0.1 * rng.normal(size=(200, 2)) + 5.0
    parts = [SimpleNamespace(streams={"state": x[r]}, actions=y[r]) for r in (slice(0, 150), slice(150, 200))]
    model = Ridge(1.0).fit(x[:150], y[:150])
    expected = ((model.predict(x[150:]) - y[150:]) ** 2).mean()
    assert _ridge_error(parts[0], parts[1]) == pytest.approx(expected, rel=1e-6)  # type: ignore[arg-type]
