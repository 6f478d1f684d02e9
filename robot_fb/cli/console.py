"""`robot-fb console`: a hub for real robots, and the page from which people work with them."""

from __future__ import annotations

import dataclasses
import sys
import threading
from pathlib import Path

import tyro

from robot_fb.cli import common
from robot_fb.console.app import Fleet
from robot_fb.console.serve import Console, ConsoleConfig
from robot_fb.episodes.store import Store
from robot_fb.fleet.archive import Archive
from robot_fb.fleet.hub import Hub
from robot_fb.fleet.server import Server


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConsoleArgs(ConsoleConfig):
    """Open a hub that robots join, and a page from which people help them. Ctrl-C closes both.

    The address that is printed holds the operator's token; the second one is for those who look on. Episodes that the
    robots bring lie in STORE. A robot joins with a key that was made here: robot-fb enrol NAME --keys KEYS.

    Attributes:
        store: of the episodes that robots bring.
        keys: folder of the keys; the hub's own are made if missing.
        hub: where robots reach the hub; tcp://0.0.0.0:8766 lets other machines in. All of it is encrypted.
        queue: who is helped first: by urgency, or first come first served.
        json: print one JSON document to stdout: the addresses.
    """

    store: Path = tyro.MISSING
    keys: Path = Path("keys")
    hub: str = "tcp://127.0.0.1:8766"
    queue: str = "priority"
    json: bool = False


def main(argv: list[str]) -> int:
    """Serves until it is stopped."""
    args = common.parse(ConsoleArgs, argv, "robot-fb console")
    hub = Hub(args.queue, post=Archive(Store(args.store, create=True), args.store / "incoming"))
    fleet = Fleet()
    with Server(hub, args.keys, args.hub) as server, Console(fleet, args) as page:
        fleet.attach(server.do)
        if args.json:
            common.emit({"operator": page.address, "viewer": page.viewers_address, "hub": server.address})
        else:
            print(f"robots join at {server.address}\nconsole: {page.address}\nto look on: {page.viewers_address}")
        sys.stdout.flush()
        threading.Event().wait()
    return 0
