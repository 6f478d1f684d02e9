// The web socket: says, hears, measures the round trip, and comes back when it was lost.

const PING_MS = 200;
const AGAIN_MS = 1000;

export class Link {
  constructor(hear, changed) {
    this.trip = NaN;
    this.open = false;
    this._hear = hear;
    this._changed = changed;
    this._connect();
    setInterval(() => this.say({ kind: "ping", t: performance.now() }), PING_MS);
  }

  say(message) {
    if (this.open) this._socket.send(JSON.stringify(message));
    return this.open;
  }

  _connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this._socket = new WebSocket(`${scheme}://${location.host}/live`);
    this._socket.onopen = () => this._turn(true, "");
    this._socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.kind === "pong") this.trip = performance.now() - message.t;
      else this._hear(message);
    };
    this._socket.onclose = (event) => this._closed(event);
  }

  _closed(event) {
    this._turn(false, event.reason);
    this.trip = NaN;
    if (event.reason === "logged out" || event.reason === "the page was opened elsewhere") return;
    setTimeout(async () => {
      try {
        const page = await fetch("/", { cache: "no-store" }); // a session that is over gets the login page
        if ((await page.text()).includes('id="form"')) location.reload();
        else this._connect();
      } catch {
        this._closed(event);
      }
    }, AGAIN_MS);
  }

  _turn(open, reason) {
    this.open = open;
    this._changed(open, reason);
  }
}
