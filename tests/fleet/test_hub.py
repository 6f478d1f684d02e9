"""The hub's rules, without a socket and with a clock of the test's own."""

from __future__ import annotations

import pytest

from robot_fb.errors import ConfigError
from robot_fb.fleet.hub import SILENT_S, Hub
from robot_fb.fleet.leases import LIFE_S
from robot_fb.fleet.protocol import (
    Beat,
    Hello,
    Mark,
    Offer,
    Picture,
    Ping,
    Request,
    Said,
    Status,
    Steer,
    Watch,
    Who,
    Work,
)
from robot_fb.runtime.handshake import Event, State

HELLO = Hello("reach", 0.05, (-1.0, -1.0), (1.0, 1.0), "abc", "autonomous")


def status(state=State.AUTONOMOUS, risk=0.0, episode=1):
    return Status(0.0, state, risk, 0.0, 0.0, episode, False, "", "", (0.0,))


class Fleet:
    """A hub with members that are heard at every moment that the test names."""

    def __init__(self, *names, order="priority"):
        self.hub, self.now = Hub(order), 0.0
        for name in names:
            self.hub.receive(name, HELLO, 0.0)
        self.hub.drain()

    def at(self, now):
        self.now = now
        for name, seen in self.hub.members.items():
            self.hub.receive(name, seen.status or status(), now)
        self.hub.tick(now)
        return [pair for pair in self.hub.drain() if not isinstance(pair[1], Beat)]

    def tell(self, name, message):
        self.hub.receive(name, message, self.now)
        return [answer for to, answer in self.hub.drain() if to == name and answer != Beat(-1)]

    def asks(self, name, risk=2.0, irreversible=0.0):
        self.tell(name, status(State.FROZEN, risk))
        return self.tell(name, Request(risk, "risk", irreversible))


@pytest.fixture
def fleet():
    return Fleet("one", "two")


def test_a_request_is_queued_and_granted_to_one_operator_alone(fleet):
    assert fleet.asks("one") == [Said("queued")]
    assert [each.robot for each in fleet.hub.waiting(0.0)] == ["one"]
    assert fleet.hub.take("ann", "one", 0.5) == ""
    assert fleet.hub.drain() == [("one", Said("granted"))]
    assert fleet.hub.waiting(0.5) == [] and fleet.hub.waits == [0.5]
    assert fleet.hub.take("bob", "one", 0.6) == "one is with ann"
    assert "hand it back first" in fleet.hub.take("ann", "two", 0.6)
    assert fleet.hub.take("ann", "one", 0.6) == ""
    assert fleet.hub.drain() == []


def test_only_the_holder_steers_and_speaks_but_everybody_may_stop(fleet):
    fleet.asks("one")
    fleet.hub.take("ann", "one", 0.0)
    fleet.hub.drain()
    steer = Steer((0.1, 0.2), True, 1, 0.0)
    assert fleet.hub.steer("bob", "one", steer) == "you do not have one"
    assert fleet.hub.say("bob", "one", Event.HANDED_BACK) == "you do not have one"
    assert fleet.hub.mark("bob", "one", Mark("good", "", "bob")) == "you do not have one"
    assert "takes 2 numbers" in fleet.hub.steer("ann", "one", Steer((0.1,), True, 1, 0.0))
    assert fleet.hub.drain() == []
    assert fleet.hub.steer("ann", "one", steer) == ""
    assert fleet.hub.say("bob", "one", Event.STOP) == ""
    assert fleet.hub.drain() == [("one", steer), ("one", Said("stop"))]
    assert fleet.hub.leases.holder("one") is None


@pytest.mark.parametrize("event", [Event.GRANTED, Event.ALARMED, Event.READY, Event.GRASPED])
def test_what_operators_do_not_say(fleet, event):
    fleet.hub.take("ann", "one", 0.0)
    fleet.hub.drain()
    assert "do not say" in fleet.hub.say("ann", "one", event)
    assert fleet.hub.drain() == []


def test_a_robot_that_did_not_ask_can_be_called(fleet):
    fleet.tell("one", status())
    assert fleet.hub.take("ann", "one", 0.0) == ""
    assert fleet.hub.drain() == [("one", Said("called"))]
    assert fleet.asks("one", 0.0) == [Said("queued"), Said("granted")]
    assert fleet.hub.waits == []


def test_a_stopped_robot_is_reset_before_it_is_taken(fleet):
    fleet.tell("one", status(State.STOPPED))
    assert "stopped" in fleet.hub.take("ann", "one", 0.0)
    assert fleet.hub.say("ann", "one", Event.RESET) == ""
    assert fleet.hub.drain() == [("one", Said("reset"))]


def test_a_silent_operator_loses_the_lease(fleet):
    fleet.asks("one")
    fleet.hub.take("ann", "one", 0.0)
    fleet.tell("one", status(State.HUMAN))
    fleet.hub.hear("ann", 0.5)
    assert ("one", Said("lost")) not in fleet.at(0.5 + 0.9 * LIFE_S)
    assert ("one", Said("lost")) in fleet.at(0.5 + 1.1 * LIFE_S)
    assert fleet.hub.take("bob", "one", fleet.now) == ""


def test_an_operator_who_leaves_frees_the_robot(fleet):
    fleet.hub.take("ann", "one", 0.0)
    fleet.hub.watch("ann", "one")
    fleet.hub.drain()
    fleet.hub.leave("ann")
    assert fleet.hub.drain() == [("one", Watch(False)), ("one", Said("lost"))]


def test_a_silent_member_is_away_and_comes_back(fleet):
    fleet.asks("one")
    fleet.hub.tick(SILENT_S + 0.1)
    assert fleet.hub.members["one"].away and fleet.hub.waiting(1.2) == []
    assert fleet.hub.take("ann", "one", 1.2) == "one is not there"
    fleet.now = 1.3
    assert fleet.asks("one") == [Said("queued")]
    assert fleet.hub.take("ann", "one", 1.4) == ""


def test_a_member_that_restarts_ends_the_lease(fleet):
    fleet.hub.take("ann", "one", 0.0)
    assert Said("lost") in fleet.tell("one", HELLO)
    assert fleet.hub.leases.holder("one") is None


def test_a_lease_and_a_request_last_for_one_episode(fleet):
    fleet.asks("one")
    fleet.tell("one", status(episode=2))
    assert fleet.hub.waiting(0.0) == []
    fleet.hub.take("ann", "one", 0.0)
    assert Said("lost") in fleet.tell("one", status(episode=3))


def test_a_hub_that_was_restarted_learns_who_is_there():
    hub = Hub()
    hub.receive("one", status(State.HUMAN), 0.0)
    assert hub.drain() == [("one", Who())]
    hub.receive("one", HELLO, 0.1)
    hub.receive("one", status(State.HUMAN), 0.1)
    assert ("one", Said("lost")) in hub.drain()


def test_pings_are_answered(fleet):
    assert fleet.tell("one", Ping(7)) == [Beat(7)]


def test_pictures_are_asked_for_while_somebody_watches(fleet):
    fleet.hub.watch("ann", "one")
    fleet.hub.watch("bob", "one")
    assert fleet.hub.drain() == [("one", Watch(True))]
    fleet.tell("one", Picture("camera/wrist", 1.0, b"jpeg"))
    assert fleet.hub.members["one"].pictures["camera/wrist"].jpeg == b"jpeg"
    fleet.hub.watch("ann", "two")
    fleet.hub.watch("bob", None)
    assert fleet.hub.drain() == [("two", Watch(True)), ("one", Watch(False))]


def test_urgent_robots_first_and_nobody_waits_for_ever():
    fleet = Fleet("one", "two", "three")
    fleet.asks("one", risk=1.1)
    fleet.now = 1.0
    fleet.asks("two", risk=5.0)
    fleet.asks("three", risk=1.1, irreversible=1.0)
    assert [each.robot for each in fleet.hub.waiting(1.0)] == ["three", "two", "one"]
    fleet.hub.receive("two", Request(50.0, "worse", 0.0), 20.0)
    waiting = fleet.hub.waiting(20.0)
    assert waiting[1].robot == "two" and waiting[1].since == 1.0
    fleet.now = 40.0
    fleet.hub.receive("late", HELLO, 40.0)
    fleet.asks("late", risk=9.0, irreversible=0.5)
    assert fleet.hub.waiting(40.0)[-1].robot == "late"


def test_first_come_first_served_is_an_option():
    fleet = Fleet("one", "two", order="fifo")
    fleet.asks("one", risk=1.1)
    fleet.now = 1.0
    fleet.asks("two", risk=9.0)
    assert [each.robot for each in fleet.hub.waiting(1.0)] == ["one", "two"]
    with pytest.raises(ConfigError, match="priority, fifo"):
        Hub("lifo")


def test_late_members_hear_of_the_release_and_of_the_work(fleet):
    release = Offer("release-1", 3, "0" * 64)
    fleet.hub.roll_out(release)
    fleet.hub.work(5)
    assert fleet.hub.drain() == [("one", release), ("two", release), ("one", Work(5)), ("two", Work(5))]
    assert fleet.tell("three", HELLO) == [release, Work(5)]
