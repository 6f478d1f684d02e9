"""The page's server: log in, then one web socket for everything live."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from importlib.resources import files
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from robot_fb.console.access import Access, Place, Session, TooMany
from robot_fb.console.talk import MAX_BYTES, Shift, Talk, read
from robot_fb.errors import ProtocolError
from robot_fb.fleet.hub import Hub

COOKIE = "robot_fb_session"

SENDS_S = 0.05
"""The page hears that often how the fleet is [s]."""

RATE = 200
"""Messages in a second that a page may send."""

PAGES = {"/": "index.html", "/login": "login.html"}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
}

R = TypeVar("R")


class Fleet:
    """Where the hub is: a server of real robots, or simulated robots that come anew with every round.

    Args:
        shift: who works the queue.
    """

    def __init__(self, shift: Shift | None = None) -> None:
        self.shift = shift or Shift()
        self._do: Callable[[Callable[[Hub, float], Any]], Any] | None = None
        self._idle = Hub()

    def attach(self, do: Callable[[Callable[[Hub, float], Any]], Any] | None) -> None:
        """`do` calls a function of (hub, now) while nobody else touches the hub; None: there is no hub now."""
        self._do = do

    def do(self, what: Callable[[Hub, float], R]) -> R:
        """Calls `what(hub, now)` safely; an empty hub stands in where there is none."""
        do = self._do
        return what(self._idle, time.monotonic()) if do is None else do(what)


def make_app(fleet: Fleet, access: Access, place: Place) -> Starlette:
    """The application."""
    site = _Site(fleet, access, place)
    return Starlette(routes=[
        Route("/login", site.login, methods=["POST"]),
        Route("/logout", site.logout, methods=["POST"]),
        WebSocketRoute("/live", site.live),
        Route("/{name:path}", site.file, methods=["GET"]),
    ])


class _Site:
    def __init__(self, fleet: Fleet, access: Access, place: Place) -> None:
        self._fleet, self._access, self._place = fleet, access, place
        self._open: dict[str, WebSocket] = {}  # session's name -> its page
        self._files = {path.name: path.read_bytes() for path in files("robot_fb.console").joinpath("page").iterdir()}

    async def file(self, request: Request) -> Response:
        """A file of the page; all of them are public but tell nothing."""
        if not self._place.knows_host(request.headers):
            return _refuse(421, "this server has another name")
        path = request.url.path
        if path == "/" and self._session(request) is None:
            path = "/login"
        name = PAGES.get(path, path.removeprefix("/"))
        if name not in self._files:
            return _refuse(404, "there is no such page")
        kind = KINDS["." + name.rpartition(".")[2]]
        return Response(self._files[name], media_type=kind, headers=HEADERS)

    async def login(self, request: Request) -> Response:
        """A token for a session."""
        if problem := self._stranger(request):
            return problem
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MAX_BYTES:
                return _refuse(413, "the message is too long")
        try:
            said = json.loads(body)
            token, name = said["token"], said.get("name", "")
            if not (isinstance(token, str) and isinstance(name, str)):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return _refuse(400, "expected a token")
        try:
            id = self._access.login(token, name)
        except TooMany:
            return _refuse(429, "too many wrong tokens; wait a minute")
        if id is None:
            return _refuse(403, "that token is not right; it is in the terminal where the console was started")
        found = self._access.session(id)
        response = JSONResponse({"role": found.role if found else ""}, headers=HEADERS)
        secure = self._place.scheme == "https"
        response.set_cookie(COOKIE, id, httponly=True, samesite="strict", secure=secure, path="/")
        return response

    async def logout(self, request: Request) -> Response:
        """Ends the session."""
        if problem := self._stranger(request):
            return problem
        session = self._session(request)
        self._access.logout(request.cookies.get(COOKIE, ""))
        if session is not None and session.name in self._open:
            await _close(self._open[session.name], "logged out")
        response = JSONResponse({}, headers=HEADERS)
        response.delete_cookie(COOKIE, path="/")
        return response

    async def live(self, socket: WebSocket) -> None:
        """Everything that a page says and hears."""
        session = self._session(socket)
        trusted = self._place.knows_host(socket.headers) and self._place.knows_origin(socket.headers)
        if session is None or not trusted:
            await socket.close(1008)  # before it was accepted: the browser sees a 403
            return
        await socket.accept()
        before = self._open.get(session.name)
        self._open[session.name] = socket
        if before is not None:
            await _close(before, "the page was opened elsewhere")
        talk = Talk(session, self._fleet.shift)
        sending = asyncio.create_task(self._send(socket, talk))
        try:
            await self._hear(socket, talk)
        finally:
            sending.cancel()
            if self._open.get(session.name) is socket:
                del self._open[session.name]
                self._fleet.do(talk.leave)

    async def _hear(self, socket: WebSocket, talk: Talk) -> None:
        times: deque[float] = deque(maxlen=RATE)
        while True:
            try:
                message = await socket.receive()
                if message["type"] != "websocket.receive":
                    return
                now = time.monotonic()
                if len(times) == RATE and now - times[0] < 1.0:
                    raise ProtocolError("too many messages", expected=f"at most {RATE} a second")
                times.append(now)
                said = read(message.get("text") or message.get("bytes") or "")
                if self._session(socket) is None:
                    raise ProtocolError("the session is over")
            except ProtocolError as error:
                await _close(socket, str(error))
                return
            except (WebSocketDisconnect, RuntimeError):
                return
            answer = self._fleet.do(lambda hub, now, said=said: talk.hear(said, hub, now))
            if answer is not None:
                await _send(socket, answer)

    async def _send(self, socket: WebSocket, talk: Talk) -> None:
        while True:
            fleet, robot = self._fleet.do(lambda hub, now: (talk.fleet(hub, now), talk.robot(hub)))
            for message in (fleet, *robot):
                if not await _send(socket, message):
                    return
            await asyncio.sleep(SENDS_S)

    def _session(self, request: Request | WebSocket) -> Session | None:
        return self._access.session(request.cookies.get(COOKIE, ""))

    def _stranger(self, request: Request) -> Response | None:
        """Why a request that changes something is refused."""
        if not self._place.knows_host(request.headers):
            return _refuse(421, "this server has another name")
        if not self._place.knows_origin(request.headers):
            return _refuse(403, "the request comes from another page")
        return None


async def _send(socket: WebSocket, message: dict[str, Any]) -> bool:
    """False where the page is gone."""
    try:
        await socket.send_text(json.dumps(message, separators=(",", ":")))
    except (WebSocketDisconnect, RuntimeError):
        return False
    return True


async def _close(socket: WebSocket, why: str) -> None:
    try:
        await socket.close(1008, why[:120])
    except (WebSocketDisconnect, RuntimeError):
        pass


def _refuse(status: int, why: str) -> Response:
    return JSONResponse({"why": why}, status, headers=HEADERS)
