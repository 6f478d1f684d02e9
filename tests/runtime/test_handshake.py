"""The transition table: what it must never allow, checked over all of its paths."""

from __future__ import annotations

import pytest

from robot_fb.runtime.handshake import MOVING, TRANSITIONS, Event, Handshake, State

ROWS = [(before, event, after) for before, row in TRANSITIONS.items() for event, after in row.items()]

TAKEOVER = [
    Event.ALARMED, Event.FROZE, Event.QUEUED, Event.GRANTED, Event.GRASPED, Event.RELEASED, Event.HANDED_BACK,
    Event.READY,
]


def test_every_state_can_be_reached_and_left():
    assert set(TRANSITIONS) == set(State)
    assert {after for *_, after in ROWS} == set(State)
    assert all(TRANSITIONS.values())


def test_a_person_moves_the_robot_only_with_a_lease_and_a_held_deadman():
    assert [(before, event) for before, event, after in ROWS if after is State.HUMAN] == [(State.LEASED, Event.GRASPED)]
    ways_to_a_lease = {event for _, event, after in ROWS if after is State.LEASED} - {Event.RELEASED, Event.REWOUND}
    assert ways_to_a_lease == {Event.GRANTED}


def test_the_policy_goes_on_only_with_a_new_plan():
    into = [(before, event) for before, event, after in ROWS if after is State.AUTONOMOUS]
    assert into == [(State.RETURNING, Event.READY)]


def test_nothing_moves_between_two_that_move():
    for before, _, after in ROWS:
        assert before is after or before not in MOVING or after not in MOVING


def test_stop_works_everywhere_and_only_a_reset_ends_it():
    assert all(TRANSITIONS[state][Event.STOP] is State.STOPPED for state in State if state is not State.STOPPED)
    assert set(TRANSITIONS[State.STOPPED]) == {Event.RESET} and TRANSITIONS[State.STOPPED][Event.RESET] not in MOVING


@pytest.mark.parametrize("state", [State.LEASED, State.HUMAN, State.REWIND])
def test_a_lease_that_is_lost_freezes_the_robot(state):
    assert TRANSITIONS[state][Event.LOST] is State.FROZEN


def test_the_order_of_a_takeover():
    shake = Handshake()
    seen = []
    for event in TAKEOVER:
        assert shake.allows(event) and shake.happen(event) and shake.last is event
        seen.append(shake.state)
    assert seen == [
        State.ALARM, State.FROZEN, State.REQUESTED, State.LEASED, State.HUMAN, State.LEASED, State.RETURNING,
        State.AUTONOMOUS,
    ]


@pytest.mark.parametrize("skipped", range(len(TAKEOVER) - 3))
def test_no_step_of_it_can_be_left_out(skipped):
    shake = Handshake()
    happened = [shake.happen(event) for event in [*TAKEOVER[:skipped], *TAKEOVER[skipped + 1:5]]]
    assert happened == [True] * skipped + [False] * (4 - skipped) and shake.state is not State.HUMAN
