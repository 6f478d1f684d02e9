"""The page in a real browser: log in, take a robot over, move it while the deadman is held, and only then."""

from __future__ import annotations

import shutil
import threading
import time

import cv2
import numpy as np
import pytest

from robot_fb.fleet.protocol import Mark, Picture, Said
from robot_fb.runtime.handshake import Event

from .conftest import status

chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(chromium is None, reason="no Chromium on this machine")

JPEG = cv2.imencode(".jpg", np.full((64, 64, 3), 120, np.uint8))[1].tobytes()

AFTER = {
    Event.GRANTED: "leased", Event.CALLED: "leased", Event.HANDED_BACK: "autonomous", Event.LOST: "autonomous",
}


class Alive:
    """Lets robot `one` answer as a member does, and show pictures, until it is told to stop."""

    def __init__(self, robots):
        self._robots, self.pictures, self._over, self._read = robots, True, threading.Event(), 0
        self.state = "requested"
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self):
        self._robots.asks("one")
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._over.set()
        self._thread.join()

    def _work(self):
        while not self._over.wait(0.05):
            for name, message in self._robots.said[self._read :]:
                if name == "one" and isinstance(message, Said):
                    self.state = AFTER.get(message.event, self.state)
            self._read = len(self._robots.said)
            self._robots.hear("one", status(self.state))
            if self.pictures:
                self._robots.hear("one", Picture("camera/front", time.monotonic(), JPEG))


@pytest.fixture
def page(console):
    with playwright.sync_playwright() as found:
        browser = found.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda said: page.problems.append(said.text) if said.type == "error" else None)
        page.goto(console.address)
        yield page
        browser.close()


def test_a_robot_moves_in_the_browser_while_the_deadman_is_held(robots, page):
    expect = playwright.expect
    with Alive(robots) as robot:
        expect(page.locator("#link")).to_have_text("connected")
        assert "token" not in page.url
        expect(page.locator("#alarms")).to_contain_text("one needs help")
        page.get_by_role("button", name="one", exact=False).first.click()
        expect(page.locator("#cameras img")).to_have_count(1)
        page.keyboard.press("t")
        expect(page.locator("#state")).to_have_text("is held")
        page.keyboard.down("w")
        time.sleep(0.3)
        assert robots.steered() == []  # no deadman, no command
        page.keyboard.down("Space")
        expect(page.locator("#hold")).to_have_text("moving")
        time.sleep(0.3)
        page.keyboard.up("Space")
        expect(page.locator("#hold")).to_contain_text("hold Space")
        sent = [message for _, message in robots.steered()]
        assert sent[0].held and sent[0].action[0] > 0 and sent[0].action[1] == 1.0  # the grip stays as it was
        assert not sent[-1].held and [each.sequence for each in sent] == sorted({each.sequence for each in sent})
        page.keyboard.up("w")

        robot.pictures = False
        expect(page.locator("#hold")).to_have_text("the picture is old: nothing moves")
        count = len(robots.steered())
        page.keyboard.down("Space")
        time.sleep(0.3)
        assert len(robots.steered()) == count
        page.keyboard.up("Space")

        page.locator("#text").fill("the plug was askew")
        page.locator("#text").press("Enter")
        page.keyboard.press("1")
        page.locator("#back").click()
        expect(page.locator("#state")).to_have_text("works alone")
    marks = [message for _, message in robots.said if isinstance(message, Mark)]
    assert [(mark.what, mark.text) for mark in marks] == [("note", "the plug was askew"), ("good", "")]
    assert page.problems == []


def test_dragging_on_the_pad_moves_and_a_hidden_page_lets_go(robots, page):
    expect = playwright.expect
    with Alive(robots):
        page.get_by_role("button", name="one", exact=False).first.click()
        expect(page.locator("#cameras img")).to_have_count(1)
        page.locator("#take").click()
        expect(page.locator("#state")).to_have_text("is held")
        box = page.locator("#pad").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 5, steps=3)
        expect(page.locator("#hold")).to_have_text("moving")
        page.evaluate("window.dispatchEvent(new Event('blur'))")
        expect(page.locator("#hold")).to_contain_text("hold Space")
        assert not robots.steered()[-1][1].held
        page.mouse.up()
    assert page.problems == []


def test_a_wrong_token_is_told_and_the_page_stays_shut(console, page):
    page.locator("#logout").click()
    page.locator("#token").fill("guess")
    page.get_by_role("button", name="Log in").click()
    playwright.expect(page.locator("#why")).to_contain_text("not right")
    assert page.locator("#cards").count() == 0
