"""A hub and members over real sockets: takeover, links that break, restarts, strangers, and episodes on their way."""

from __future__ import annotations

import time

import numpy as np
import pytest
import zmq

from robot_fb.episodes.store import Store
from robot_fb.episodes.verify import verify
from robot_fb.errors import ConfigError
from robot_fb.fleet import keys
from robot_fb.fleet.protocol import Hello, Mark, Steer, encode
from robot_fb.runtime.handshake import Event, State
from robot_fb.types import SOURCES

STOPS_S = 0.1
"""Motion ends within that time of whatever breaks [s]."""


def steer(place, robot, sequence, x=0.01):
    stamp = place.hub.members[robot.member.name].status.stamp
    return place.do(lambda hub, now: hub.steer("ann", robot.member.name, Steer((x,), True, sequence, stamp)))


def in_hand(place, robot):
    """Ann has the robot, and moves it."""
    place.wait(lambda: robot.member.name in place.hub.members and robot.robot.moved)
    robot.risk.now = 2.0
    place.wait(lambda: place.hub.waiting(0.0))
    assert place.do(lambda hub, now: hub.take("ann", robot.member.name, now)) == ""
    for sequence in range(1, 60):
        place.do(lambda hub, now: hub.hear("ann", now))
        assert steer(place, robot, sequence) == ""
        time.sleep(1 / 60)
        if robot.state is State.HUMAN and sequence > 20:
            return sequence
    raise AssertionError("the robot was never in hand")


def test_a_person_takes_over_and_hands_back(place):
    one = place.join("one")
    last = in_hand(place, one)
    place.wait(lambda: place.hub.members["one"].state is State.HUMAN)
    assert place.hub.members["one"].status.force == pytest.approx(5.0)
    place.do(lambda hub, now: hub.mark("ann", "one", Mark("good", "", "ann")))
    place.do(lambda hub, now: hub.say("ann", "one", Event.HANDED_BACK))
    one.risk.now = 0.0
    place.wait(lambda: one.state is State.AUTONOMOUS)
    assert steer(place, one, last + 1) == "you do not have one"
    one.robot.x = 2.0
    place.wait(lambda: place.arrived)
    [(name, id)] = place.arrived
    episode = place.store.read(id)
    human = episode.columns.sources == SOURCES.index("human")
    assert name == "one" and episode.success and human.any()
    assert [event.kind for event in place.store.feedback(id)] == ["evaluation"]


def test_pictures_come_while_somebody_watches(place):
    place.join("one")
    place.wait(lambda: "one" in place.hub.members)
    assert not place.hub.members["one"].pictures
    place.do(lambda hub, now: hub.watch("ann", "one"))
    place.wait(lambda: "camera/front" in place.hub.members["one"].pictures)
    assert place.hub.members["one"].pictures["camera/front"].jpeg[:2] == b"\xff\xd8"


def test_a_command_on_an_old_picture_moves_nothing(place):
    one = place.join("one")
    last = in_hand(place, one)
    place.wait(lambda: one.state is State.LEASED)
    before = len(one.robot.moved)
    for k in range(10):
        stamp = place.hub.members["one"].status.stamp - 0.4
        place.do(lambda hub, now, k=k, s=stamp: hub.steer("ann", "one", Steer((0.01,), True, last + 1 + k, s)))
        time.sleep(1 / 60)
    assert len(one.robot.moved) == before
    place.wait(lambda: "limit" in place.hub.members["one"].status.refused)


def test_when_commands_stop_coming_motion_stops(place):
    one = place.join("one")
    in_hand(place, one)
    stopped = time.monotonic()
    place.wait(lambda: one.state is State.LEASED)
    time.sleep(0.2)
    assert one.robot.moved[-1] < stopped + STOPS_S


def test_when_the_hub_goes_the_robot_stops_and_when_it_is_back_it_asks_again(place):
    one = place.join("one")
    in_hand(place, one)
    place.stop()
    stopped = time.monotonic()
    time.sleep(0.3)
    assert one.robot.moved[-1] < stopped + STOPS_S
    place.wait(lambda: one.state is State.FROZEN)
    place.start()
    place.wait(lambda: place.hub.waiting(0.0))
    place.wait(lambda: one.state is State.REQUESTED)
    assert place.hub.members["one"].alarm


def test_a_robot_that_waits_asks_a_restarted_hub(place):
    one = place.join("one")
    place.wait(lambda: one.robot.moved)
    one.risk.now = 2.0
    place.wait(lambda: one.state is State.REQUESTED)
    place.stop()
    place.start()
    place.wait(lambda: place.hub.waiting(0.0))


def test_without_a_hub_the_policy_goes_on_and_an_alarm_holds(place):
    place.stop()
    one = place.join("one")
    place.wait(lambda: len(one.robot.moved) > 3)
    one.risk.now = 2.0
    place.wait(lambda: one.state is State.FROZEN)
    time.sleep(0.1)
    before = len(one.robot.moved)
    time.sleep(0.2)
    assert one.state is State.FROZEN and len(one.robot.moved) == before
    place.start()
    place.wait(lambda: one.state is State.REQUESTED)


def test_what_was_logged_without_a_hub_comes_in_later_and_whole(place):
    place.stop()
    one = place.join("one", max_steps=5)
    one.thread.join(5)
    [id] = one.link.unsent()
    content = one.store.file(id).read_bytes()
    place.start()
    place.wait(lambda: place.arrived == [("one", id)])
    assert place.store.file(id).read_bytes() == content
    assert place.store.query(robot="one") == [id] and verify(place.store.path).ok
    place.wait(lambda: one.link.unsent() == [])


def test_a_member_that_was_killed_brings_its_log_when_it_is_back(place):
    one = place.join("one", max_steps=5)
    one.link.__exit__()
    one.thread.join(5)
    [id] = Store(place.folder / "one").query()
    place.join("one", max_steps=1000)
    place.wait(lambda: ("one", id) in place.arrived)


def test_a_second_robot_under_the_same_name_stays_out(place):
    place.join("one")
    place.wait(lambda: "one" in place.hub.members)
    place.wait(lambda: place.hub.members["one"].status is not None)
    second = place.stack.enter_context(type(place.join("two"))(place, "one"))
    place.wait(lambda: second.link.problem)
    assert "connected already" in second.link.problem
    assert place.hub.members["one"].status.episode == 1


def test_a_release_reaches_every_member_and_those_who_come_later(place):
    one = place.join("one")
    path = place.folder / "release-1"
    path.write_bytes(np.random.default_rng(0).bytes(700_000))
    place.wait(lambda: "one" in place.hub.members)
    place.do(lambda hub, now: hub.roll_out(place.archive.publish(path)))
    two = place.join("two")
    for each in (one, two):
        place.wait(lambda each=each: each.link.release is not None)
        assert each.link.release.read_bytes() == path.read_bytes()
    place.wait(lambda: place.archive.has == {"one": "release-1", "two": "release-1"})


class Stranger:
    """A socket with keys of its own choice."""

    def __init__(self, place, pair=None):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        if pair is not None:
            self.socket.curve_publickey, self.socket.curve_secretkey = pair
            self.socket.curve_serverkey = keys.public(place.keys)
        self.socket.connect(place.address)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()
        self.context.term()

    def hears(self, seconds=0.5):
        return self.socket.recv() if self.socket.poll(int(1000 * seconds)) else None


HELLO = Hello("rail", 0.05, (-1.0,), (1.0,), "abc", "autonomous")


@pytest.mark.parametrize("pair", [None, zmq.curve_keypair()], ids=["no key", "a key of nobody's"])
def test_strangers_are_not_heard(place, pair):
    with Stranger(place, pair) as stranger:
        stranger.socket.send(encode(HELLO))
        assert stranger.hears() is None
    assert not place.hub.members


def test_a_member_that_talks_nonsense_harms_nobody(place):
    one = place.join("one")
    keys.enrol(place.keys, "bad")
    pair = keys.pair(place.keys, "bad")
    with Stranger(place, (pair.public, pair.secret)) as bad:
        for data in (b"", b"RFB", b"\x00" * 1000, b"RFB\x02" + encode(HELLO)[4:], encode(Mark("good", "", "me"))):
            bad.socket.send(data)
            bad.socket.send_multipart([data, data])
        place.wait(lambda: len(place.server.refused) >= 4)
        bad.socket.send(b"RFB\x01" + b"x" * (2 << 20))  # too long: the socket closes the connection
        time.sleep(0.2)
    assert any("another version" in reason for _, reason in place.server.refused)
    heard = place.hub.members["one"].heard
    place.wait(lambda: place.hub.members["one"].heard > heard)
    assert one.robot.moved


def test_keys_that_others_can_read_are_refused(place, tmp_path):
    keys.enrol(place.keys, "one")
    (place.keys / "one.key_secret").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        keys.pair(place.keys, "one")
    with pytest.raises(ConfigError, match="enrol"):
        keys.pair(place.keys, "nobody")
    for name in ("../x", "hub", "", "A b"):
        with pytest.raises(ConfigError, match="name"):
            keys.enrol(place.keys, name)
