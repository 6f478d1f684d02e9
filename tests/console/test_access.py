"""Nobody gets in without a token, from another page, or through another name."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from robot_fb.console.access import GUESSES, SESSION_S, WINDOW_S, Access, Place, TooMany
from robot_fb.errors import ConfigError


def test_a_token_opens_a_session_of_its_role_and_a_wrong_one_none():
    access = Access(clock=lambda: 0.0)
    for role, token in access.tokens.items():
        assert access.session(access.login(token)).role == role
    assert access.login("") is None and access.login(access.tokens["viewer"] + "x") is None
    assert access.session("") is None and access.session("\udc80") is None


def test_guessing_is_stopped_and_an_open_session_is_not():
    now = [0.0]
    access = Access(clock=lambda: now[0])
    id = access.login(access.tokens["operator"])
    for _ in range(GUESSES):
        assert access.login("guess") is None
    with pytest.raises(TooMany):
        access.login(access.tokens["operator"])
    assert access.session(id)
    now[0] = WINDOW_S + 1
    assert access.login(access.tokens["operator"])


def test_a_session_ends_when_it_is_logged_out_or_not_used():
    now = [0.0]
    access = Access(clock=lambda: now[0])
    first, second = (access.login(access.tokens["operator"]) for _ in range(2))
    access.logout(first)
    assert access.session(first) is None and access.session(second)
    now[0] = SESSION_S + 1
    assert access.session(second) is None


def test_two_people_of_one_name_are_told_apart():
    access = Access()
    names = [access.session(access.login(access.tokens["operator"], "ann\n")).name for _ in range(3)]
    assert names == ["ann", "ann 2", "ann 3"]


@pytest.mark.parametrize(("host", "tls"), [("0.0.0.0", True), ("lab.example", False), ("::", True)])
def test_a_door_to_the_network_needs_a_name_and_tls(host, tls):
    with pytest.raises(ConfigError):
        Place(host, 8765, tls)


def test_only_its_own_name_and_its_own_page_are_known():
    place = Place("lab.example", 8765, True)
    assert place.knows_host({"host": "lab.example:8765"}) and not place.knows_host({"host": "evil.example:8765"})
    assert place.knows_origin({"origin": "https://lab.example:8765"})
    assert not place.knows_origin({"origin": "http://lab.example:8765"}) and not place.knows_origin({})


def test_the_page_is_shown_to_a_session_alone(browser):
    assert 'id="form"' in browser.request("/")[1]
    assert browser.login() == 200
    status, page, headers = browser.request("/")
    assert status == 200 and 'id="robot"' in page
    assert "default-src 'none'" in headers["content-security-policy"]
    for name in ("/../access.py", "/%2e%2e/access.py", "/nothing", "/style.css/"):
        assert browser.request(name)[0] == 404


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ({"token": "guess"}, {}, 403), ({"token": 3}, {}, 400), (b"{", {}, 400), (b"[]", {}, 400), (b"\xff", {}, 400),
        ({"token": "x" * 10_000}, {}, 413), ({"token": "right"}, {"Origin": "http://evil.example"}, 403),
        ({"token": "right"}, {"Origin": ""}, 403), ({"token": "right"}, {"Host": "evil.example"}, 421),
    ],
)
def test_a_login_that_is_not_one_is_refused(browser, body, headers, status):
    if body == {"token": "right"}:
        body = {"token": browser.token}
    found, _, answer = browser.request("/login", body, **headers)
    assert found == status and answer["set-cookie"] is None


def test_the_cookie_is_kept_from_scripts_and_other_sites(browser):
    cookie = browser.request("/login", {"token": browser.token})[2]["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie


def test_without_a_session_or_from_another_page_no_socket_opens(browser):
    browser.login()
    for origin, cookie in [(None, ""), (None, "robot_fb_session=guess"), ("http://evil.example", None)]:
        with pytest.raises(InvalidStatus) as refused:
            browser.live(origin, cookie)
        assert refused.value.response.status_code == 403


def test_a_session_that_was_logged_out_cannot_be_replayed(browser):
    browser.login()
    stolen = browser.cookie
    with browser.live() as socket:
        assert browser.request("/logout", b"")[0] == 200
        with pytest.raises(Exception, match="logged out"):
            while True:
                socket.recv(timeout=5)
    with pytest.raises(InvalidStatus):
        browser.live(cookie=stolen)
