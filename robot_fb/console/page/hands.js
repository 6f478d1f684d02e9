// What a person's hands do: keyboard, mouse pad, gamepad, SpaceMouse. Each gives axes from -1 to 1 and whether it is
// held; the robot moves only while something is held.

const KEYS = {
  KeyW: [0, 1], KeyS: [0, -1], KeyA: [1, 1], KeyD: [1, -1], KeyR: [2, 1], KeyF: [2, -1], KeyQ: [3, 1], KeyE: [3, -1],
};
const AXES = 4; // x, y, z, yaw
const DEADZONE = 0.12;
const WHEEL_MS = 150; // a turn of the wheel moves for that long
const SHOULDER = 5;

const past = (value) => (Math.abs(value) < DEADZONE ? 0 : value);
const typing = (event) => /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "range";

export class Hands {
  constructor(pad, knob, pressed) {
    this.gamepad = "";
    this.spacemouse = "";
    this._pressed = pressed; // called with "grip", "take", "back", ... when a key or button is pressed
    this._keys = new Set();
    this._drag = null;
    this._wheel = [0, 0];
    this._cap = { axes: [0, 0, 0, 0], buttons: 0 };
    this._buttons = new Set();
    this._pad = pad;
    this._knob = knob;
    this._listen();
  }

  // {axes: [x, y, z, yaw], held} of all devices together.
  read() {
    const axes = new Array(AXES).fill(0);
    for (const code of this._keys) if (KEYS[code]) axes[KEYS[code][0]] += KEYS[code][1];
    let held = this._keys.has("Space");
    if (this._drag) {
      axes[0] += this._drag[0];
      axes[1] += this._drag[1];
      held = true;
    }
    if (performance.now() - this._wheel[1] < WHEEL_MS) axes[2] += this._wheel[0];
    this._cap.axes.forEach((value, i) => { axes[i] += value; });
    held ||= (this._cap.buttons & 1) === 1;
    held = this._readGamepad(axes) || held;
    return { axes: axes.map((value) => Math.max(-1, Math.min(1, value))), held };
  }

  letGo() {
    this._keys.clear();
    this._drag = null;
    this._cap = { axes: [0, 0, 0, 0], buttons: 0 };
    this._knob.style.transform = "";
  }

  async connectSpaceMouse() {
    const [device] = await navigator.hid.requestDevice({ filters: [{ vendorId: 0x256f }, { vendorId: 0x046d }] });
    if (!device) return;
    if (!device.opened) await device.open();
    this.spacemouse = device.productName;
    device.addEventListener("inputreport", (event) => this._hearCap(event.reportId, event.data));
    navigator.hid.addEventListener("disconnect", (event) => {
      if (event.device !== device) return;
      this.spacemouse = "";
      this._cap = { axes: [0, 0, 0, 0], buttons: 0 };
    });
  }

  _listen() {
    window.addEventListener("keydown", (event) => {
      if (typing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.code === "Space" && event.target.tagName === "BUTTON") event.target.blur();
      if (event.code === "Space" || KEYS[event.code]) event.preventDefault();
      if (event.repeat) return;
      this._keys.add(event.code);
      const word = {
        KeyG: "grip", KeyT: "take", KeyH: "back", KeyB: "rewind", Escape: "stop", Digit1: "good", Digit0: "bad",
      }[event.code];
      if (word) this._pressed(word);
    });
    window.addEventListener("keyup", (event) => this._keys.delete(event.code));
    for (const name of ["blur", "pagehide"]) window.addEventListener(name, () => this.letGo());
    document.addEventListener("visibilitychange", () => this.letGo());
    const pad = this._pad;
    pad.addEventListener("pointerdown", (event) => {
      pad.setPointerCapture(event.pointerId);
      this._move(event);
    });
    pad.addEventListener("pointermove", (event) => { if (this._drag) this._move(event); });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
      pad.addEventListener(name, () => {
        this._drag = null;
        this._knob.style.transform = "";
      });
    }
    pad.addEventListener("wheel", (event) => {
      event.preventDefault();
      this._wheel = [event.deltaY < 0 ? 1 : -1, performance.now()];
    }, { passive: false });
  }

  _move(event) {
    const box = this._pad.getBoundingClientRect();
    const reach = Math.min(box.width, box.height) / 2;
    const clip = (value) => Math.max(-1, Math.min(1, value));
    const across = clip((event.clientX - box.left - box.width / 2) / reach);
    const up = clip((box.top + box.height / 2 - event.clientY) / reach);
    this._drag = [up, -across]; // up on the pad is away from the operator: +x; left is +y
    this._knob.style.transform = `translate(${across * reach * 0.8}px, ${-up * reach * 0.8}px)`;
  }

  _readGamepad(axes) {
    const pad = [...navigator.getGamepads()].find((each) => each && each.connected && each.axes.length >= 4);
    this.gamepad = pad ? pad.id : "";
    if (!pad) return false;
    axes[0] -= past(pad.axes[1]);
    axes[1] -= past(pad.axes[0]);
    axes[2] -= past(pad.axes[3]);
    axes[3] -= past(pad.axes[2]);
    [[0, "grip"], [1, "back"]].forEach(([button, word]) => {
      const down = pad.buttons[button]?.pressed;
      if (down && !this._buttons.has(button)) this._pressed(word);
      if (down) this._buttons.add(button);
      else this._buttons.delete(button);
    });
    return Boolean(pad.buttons[SHOULDER]?.pressed);
  }

  _hearCap(report, data) {
    const number = (i) => Math.max(-1, Math.min(1, data.getInt16(2 * i, true) / 350));
    const { axes } = this._cap;
    if (report === 1) { // x to the right, y towards the user, z down
      axes[0] = past(-number(1));
      axes[1] = past(-number(0));
      axes[2] = past(-number(2));
      if (data.byteLength >= 12) axes[3] = past(-number(5));
    } else if (report === 2) {
      axes[3] = past(-number(2));
    } else if (report === 3) {
      const buttons = data.getUint8(0);
      if (buttons & 2 && !(this._cap.buttons & 2)) this._pressed("grip");
      this._cap.buttons = buttons;
    }
  }
}
