"""What people do at the page, and what a page must not do."""

from __future__ import annotations

import time

import pytest
from websockets.exceptions import ConnectionClosed

from robot_fb.cli import main as command
from robot_fb.console.talk import MAX_BYTES
from robot_fb.fleet.protocol import Mark, Said, Steer

from .conftest import Browser, hear, say, status


def test_a_person_takes_over_steers_and_hands_back(robots, browser):
    browser.login()
    robots.asks("two")
    with browser.live() as page:
        fleet = hear(page, "fleet")
        assert fleet["you"] == "ann" and [robot["name"] for robot in fleet["robots"]] == ["one", "two"]
        two = fleet["robots"][1]
        assert (two["state"], two["place"], two["alarm"]) == ("requested", 1, "risk 2.00 of 1")
        say(page, "watch", robot="two")
        robots.shows("two", 7.5)
        assert hear(page, "robot")["forces"] == [2.0, 2.0]
        assert hear(page, "picture")["stamp"] == 7.5
        say(page, "take", robot="two")
        hear(page, "fleet", lambda message: message["robots"][1]["holder"] == "ann")
        say(page, "steer", robot="two", action=[0.5, 1], held=True, sequence=1, picture=7.5)
        say(page, "mark", robot="two", what="note", text="it was stuck")
        say(page, "say", robot="two", event="handed back")
        hear(page, "fleet", lambda message: message["robots"][1]["holder"] == "")
    said = [message for name, message in robots.said if name == "two"]
    assert Steer((0.5, 1.0), True, 1, 7.5) in said and Mark("note", "it was stuck", "ann") in said
    assert [message.event for message in said if isinstance(message, Said)][-1] == "handed back"


def test_a_viewer_sees_and_moves_nothing(robots, browser):
    assert browser.login(browser.viewer_token) == 200
    with browser.live() as page:
        assert hear(page, "fleet")["role"] == "viewer"
        for message in [
            {"kind": "take", "robot": "one"}, {"kind": "say", "robot": "one", "event": "stop"},
            {"kind": "steer", "robot": "one", "action": [1, 1], "held": True, "sequence": 1, "picture": 1},
            {"kind": "mark", "robot": "one", "what": "good", "text": ""}, {"kind": "relieve", "on": True},
        ]:
            say(page, message.pop("kind"), **message)
            assert "look on" in hear(page, "no")["why"]
    assert robots.steered() == [] and robots.hub.leases.holder("one") is None


def test_two_people_cannot_have_one_robot(robots, console):
    ann, bob = Browser(console), Browser(console)
    assert ann.login(name="ann") == bob.login(name="bob") == 200
    with ann.live() as first, bob.live() as second:
        say(first, "take", robot="one")
        hear(first, "fleet", lambda message: message["robots"][0]["holder"] == "ann")
        say(second, "take", robot="one")
        assert hear(second, "no")["why"] == "one is with ann"
        say(second, "steer", robot="one", action=[1, 1], held=True, sequence=1, picture=1)
        assert hear(second, "no")["why"] == "you do not have one"
    assert robots.steered() == []


def test_a_page_that_is_gone_has_nothing(robots, browser):
    browser.login()
    with browser.live() as page:
        say(page, "take", robot="one")
        hear(page, "fleet", lambda message: message["robots"][0]["holder"] == "ann")
    end = time.monotonic() + 5
    while robots.hub.leases.holder("one") and time.monotonic() < end:
        time.sleep(0.01)
    assert robots.hub.leases.holder("one") is None
    assert [message.event for name, message in robots.said if isinstance(message, Said)][-1] == "lost"


def test_a_second_page_of_a_session_takes_the_place_of_the_first(browser):
    browser.login()
    with browser.live() as first, browser.live() as second:
        with pytest.raises(ConnectionClosed, match="opened elsewhere"):
            while True:
                first.recv(timeout=5)
        assert hear(second, "fleet")["you"] == "ann"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("{", "no JSON"), ("[]", "no known kind"), ('{"kind": "fly"}', "known kind"), ('{"kind": []}', "known kind"),
        ('{"kind": "take", "robot": 3}', "take.robot"), ('{"kind": "take"}', "other fields"),
        ('{"kind": "steer", "robot": "one", "action": [NaN, 1], "held": true, "sequence": 1, "picture": 1}', "action"),
        ('{"kind": "steer", "robot": "one", "action": [1e999], "held": true, "sequence": 1, "picture": 1}', "action"),
        ('{"kind": "steer", "robot": "one", "action": [1], "held": 1, "sequence": 1, "picture": 1}', "held"),
        ('{"kind": "steer", "robot": "one", "action": [1], "held": true, "sequence": -1, "picture": 1}', "sequence"),
        ('{"kind": "ping", "t": true}', "ping.t"), ("[" * 5000, "no JSON"), (b"\xff\xfe", "no JSON"),
        ('{"kind": "mark", "robot": "one", "what": "note", "text": "' + "x" * 3000 + '"}', "mark.text"),
    ],
)
def test_a_message_that_is_none_ends_the_page_and_harms_nothing(robots, browser, said, why):
    browser.login()
    with browser.live() as page:
        say(page, "take", robot="one")
        hear(page, "fleet", lambda message: message["robots"][0]["holder"] == "ann")
        page.send(said)
        with pytest.raises(ConnectionClosed, match=why):
            while True:
                page.recv(timeout=5)
    assert robots.steered() == []
    with browser.live() as again:
        hear(again, "fleet", lambda message: message["robots"][0]["holder"] == "")


def test_a_huge_message_and_a_flood_end_the_page(browser):
    browser.login()
    for flood in ([b"x" * (MAX_BYTES + 1)], ['{"kind": "ping", "t": 1}'] * 1000):
        with browser.live() as page, pytest.raises(ConnectionClosed):
            for message in flood:
                page.send(message)
            while True:
                page.recv(timeout=5)


def test_what_cannot_be_done_is_said(browser):
    browser.login()
    with browser.live() as page:
        for message, why in [
            ({"kind": "take", "robot": "three"}, "not there"),
            ({"kind": "say", "robot": "one", "event": "explode"}, "explode"),
            ({"kind": "say", "robot": "one", "event": "handed back"}, "do not have"),
            ({"kind": "mark", "robot": "one", "what": "nice", "text": ""}, "nice"),
            ({"kind": "mark", "robot": "one", "what": "good", "text": ""}, "do not have"),
        ]:
            say(page, message.pop("kind"), **message)
            assert why in hear(page, "no")["why"]
        say(page, "take", robot="one")
        say(page, "steer", robot="one", action=[1.0], held=True, sequence=1, picture=1)
        assert hear(page, "no")["why"] == "one takes 2 numbers"


def test_anybody_with_the_operators_token_may_stop_a_robot(robots, browser):
    browser.login()
    with browser.live() as page:
        say(page, "say", robot="one", event="stop")
        robots.hear("one", status("stopped"))
        hear(page, "fleet", lambda message: message["robots"][0]["state"] == "stopped")
        say(page, "take", robot="one")
        assert "stopped" in hear(page, "no")["why"]


def test_a_person_takes_the_simulated_operators_place_and_gives_it_back(shift, console):
    ann, bob = Browser(console), Browser(console)
    ann.login(name="ann"), bob.login(name="bob")
    with ann.live() as first, bob.live() as second:
        say(first, "relieve", on=True)
        assert hear(first, "fleet", lambda message: message["person"])["person"] == "ann"
        say(second, "relieve", on=True)
        assert hear(second, "no")["why"] == "ann has that place"
    end = time.monotonic() + 5
    while shift.person and time.monotonic() < end:
        time.sleep(0.01)
    assert shift.person == ""  # the page was closed


def test_the_command_refuses_what_cannot_be_served(tmp_path, capsys, console):
    port = console.address.partition("127.0.0.1:")[2].partition("/")[0]
    for words, hint in [
        (["--port", port], "choose another --port"), (["--port=0"], "1 to 65535"),
        (["--host=0.0.0.0"], "address or name"), (["--host=192.0.2.1"], "nothing would be encrypted"),
        (["--tls-cert=a.pem"], "belong together"), (["--tls-cert=a.pem", "--tls-key=b.pem"], "a.pem"),
        (["--hub=tcp://nowhere"], "cannot listen"),
    ]:
        out = ["--store", str(tmp_path / "s"), "--keys", str(tmp_path / "k"), "--hub=tcp://127.0.0.1:*"]
        assert command.main(["console", *out, *words]) == 2
        error = capsys.readouterr().err
        assert hint in error and len(error.strip().splitlines()) == 1
