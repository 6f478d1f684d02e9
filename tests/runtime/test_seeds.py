"""Seeds of different purposes never meet, and a seed that would wrap round is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_fb.errors import ConfigError
from robot_fb.runtime.seeds import EVALUATION, RECORD, SEEDS, SPAN, TRAINING

PLACES = st.tuples(
    st.sampled_from([RECORD, TRAINING, EVALUATION]), st.integers(0, SEEDS - 1), st.integers(0, SPAN - 1)
)


@given(PLACES, PLACES)
def test_two_places_share_a_seed_only_when_they_are_the_same(one, other):
    (first, *at), (second, *there) = one, other
    assert (first.seed(*at) == second.seed(*there)) == (one == other)


def test_every_seed_fits_in_31_bits():
    assert 0 <= RECORD.seed(0, 0) and EVALUATION.seed(SEEDS - 1, SPAN - 1) < 2**31


@pytest.mark.parametrize(("seed", "episode"), [(-1, 0), (SEEDS, 0), (0, SPAN), (0, -1)])
def test_a_seed_that_would_repeat_episodes_is_refused(seed, episode):
    with pytest.raises(ConfigError, match=r"0 to 499|at most"):
        RECORD.seed(seed, episode)
