// The operator's page. Everything that moves a robot goes through `steer`, once a picture frame of the screen.

import { Cards, word } from "./fleet.js";
import { Hands } from "./hands.js";
import { Link } from "./link.js";
import { plot } from "./plot.js";

const OLD_MS = 300; // commands on an older picture are not sent, and would be refused
const MINE = ["leased", "human", "rewind"];

const at = (id) => document.getElementById(id);
const seen = { fleet: null, robot: null, chosen: "", pictures: new Map(), alarms: new Map() };
const hand = { sequence: 0, held: false, grip: null, sent: "" };

const cards = new Cards(at("cards"), choose);
const hands = new Hands(at("pad"), at("knob"), pressed);
const link = new Link(hear, (open, reason) => {
  at("link").textContent = open ? "connected" : "not connected";
  at("link").className = `badge ${open ? "on" : "off"}`;
  if (!open) tell(reason ? `Connection closed: ${reason}` : "Connection lost; what you held has let go.");
  else if (seen.chosen) link.say({ kind: "watch", robot: seen.chosen });
});

function hear(message) {
  if (message.kind === "fleet") showFleet(message);
  else if (message.kind === "robot") seen.robot = message;
  else if (message.kind === "picture") showPicture(message);
  else if (message.kind === "no") tell(message.why);
}

function card() {
  return seen.fleet?.robots.find((robot) => robot.name === seen.chosen);
}

function mine() {
  const robot = card();
  return Boolean(robot) && robot.holder === seen.fleet.you && MINE.includes(robot.state);
}

function choose(name) {
  if (name !== seen.chosen) {
    seen.robot = null;
    seen.pictures.clear();
    at("cameras").replaceChildren();
  }
  seen.chosen = name;
  link.say({ kind: "watch", robot: name });
}

function pressed(what) {
  const robot = seen.chosen;
  if (!robot) return;
  if (what === "grip") turnGrip();
  else if (what === "take") link.say({ kind: "take", robot });
  else if (what === "back") link.say({ kind: "say", robot, event: "handed back" });
  else if (what === "rewind") link.say({ kind: "say", robot, event: "back up" });
  else if (what === "stop") link.say({ kind: "say", robot, event: "stop" });
  else if (what === "reset") link.say({ kind: "say", robot, event: "reset" });
  else link.say({ kind: "mark", robot, what, text: "" });
}

function turnGrip() {
  if (!mine() || !seen.robot) return;
  const last = seen.robot.low.length - 1;
  const middle = (seen.robot.low[last] + seen.robot.high[last]) / 2;
  hand.grip = (hand.grip ?? seen.robot.action[last]) > middle ? seen.robot.low[last] : seen.robot.high[last];
}

function pictureAge() {
  const ages = [...seen.pictures.values()].map((picture) => performance.now() - picture.arrived);
  return ages.length ? Math.max(...ages) + (link.trip || 0) / 2 : NaN;
}

function steer() {
  const age = pictureAge();
  const { axes, held } = hands.read();
  const fresh = age <= OLD_MS;
  const robot = seen.robot;
  if (mine() && robot && robot.name === seen.chosen && robot.action.length) {
    const moves = held && fresh;
    if (moves || hand.held) send(robot, axes, moves);
    hand.held = moves;
    showHold(held, fresh);
  } else {
    hand.held = false;
    hand.grip = null;
    at("hold").textContent = "not in your hand";
    at("hold").className = "hold";
  }
  at("age").textContent = Number.isNaN(age) ? "–" : `${age.toFixed(0)} ms`;
  at("age").className = age > OLD_MS ? "bad" : "";
  at("trip").textContent = Number.isNaN(link.trip) ? "–" : `${link.trip.toFixed(0)} ms`;
  requestAnimationFrame(steer);
}

function send(robot, axes, held) {
  const speed = at("speed").value / 100;
  const last = robot.low.length - 1;
  hand.grip ??= robot.action[last];
  const action = robot.high.map((high, i) => {
    if (i === last) return hand.grip;
    const axis = axes[i] ?? 0;
    return axis > 0 ? axis * speed * high : -axis * speed * robot.low[i];
  });
  hand.sequence += 1;
  const picture = Math.min(...[...seen.pictures.values()].map((each) => each.stamp));
  link.say({ kind: "steer", robot: robot.name, action, held, sequence: hand.sequence, picture });
}

function showHold(held, fresh) {
  const words = !fresh ? "the picture is old: nothing moves" : held ? "moving" : "yours: hold Space, the pad or the shoulder button to move";
  at("hold").textContent = seen.robot.refused && held ? `refused: ${seen.robot.refused}` : words;
  at("hold").className = `hold ${!fresh || seen.robot.refused ? "bad" : held ? "moving" : "ready"}`;
  const last = seen.robot.low.length - 1;
  const grip = hand.grip ?? seen.robot.action[last];
  at("grip-now").textContent = grip > (seen.robot.low[last] + seen.robot.high[last]) / 2 ? "closed" : "open";
}

function showFleet(message) {
  seen.fleet = message;
  at("who").textContent = `${message.you}${message.role === "viewer" ? ", looking on" : ""}`;
  at("doing").textContent = message.doing ? `${message.doing[0]} ${message.doing[1]}/${message.doing[2]}` : "";
  document.querySelector(".empty").hidden = message.robots.length > 0;
  at("relieve").hidden = !message.simulated || message.role === "viewer";
  at("relieve").textContent = message.person === message.you
    ? "Give the place back to the simulated operator"
    : message.person ? `${message.person} works the queue` : "Take the simulated operator's place";
  if (!seen.chosen && message.robots.length) choose(message.robots[0].name);
  cards.show(message.robots, seen.chosen);
  for (const robot of message.robots) {
    const asks = robot.state === "requested";
    if (asks && !seen.alarms.get(robot.name)) at("alarms").textContent = `${robot.name} needs help: ${robot.alarm}`;
    seen.alarms.set(robot.name, asks);
  }
  showRobot();
}

function showRobot() {
  const robot = card();
  at("robot").hidden = !robot;
  if (!robot) return;
  const operator = seen.fleet.role === "operator";
  const yours = robot.holder === seen.fleet.you;
  at("name").textContent = robot.name;
  at("state").textContent = word(robot.state);
  at("state").className = `badge ${robot.state}`;
  at("reason").textContent = robot.holder && !yours ? `with ${robot.holder}` : robot.alarm;
  at("take").disabled = !operator || Boolean(robot.holder) || ["stopped", "away"].includes(robot.state);
  at("back").disabled = at("rewind").disabled = !operator || !yours;
  at("stop").disabled = !operator || robot.state === "stopped";
  at("reset").disabled = !operator || robot.state !== "stopped";
  for (const id of ["grip", "success", "failure", "good", "bad", "text"]) at(id).disabled = !operator || !yours;
  at("devices").textContent = [hands.gamepad, hands.spacemouse].filter(Boolean).join(" · ");
  if (!seen.robot || seen.robot.name !== robot.name) return;
  const { risks, forces, touches } = seen.robot;
  const draw = (id, values, unit, options) => {
    plot(at(id), values, { count: 200, ...options });
    at(`${id}-now`).textContent = values.length ? `${values[values.length - 1].toFixed(2)}${unit}` : "";
  };
  draw("risk", risks, "", { level: 1 });
  draw("force", forces, " N", { colour: "#7a4b00", least: 5 });
  draw("touch", touches, " N", { colour: "#2d6a3e", least: 5 });
}

function showPicture(message) {
  let picture = seen.pictures.get(message.stream);
  if (!picture) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = message.stream.replace("camera/", "");
    const image = document.createElement("img");
    image.alt = `camera ${caption.textContent} of ${seen.chosen}`;
    figure.append(image, caption);
    at("cameras").append(figure);
    picture = { image };
    seen.pictures.set(message.stream, picture);
  }
  picture.image.src = `data:image/jpeg;base64,${message.jpeg}`;
  picture.stamp = message.stamp;
  picture.arrived = performance.now();
}

let silence = 0;
function tell(text) {
  at("note").textContent = text;
  at("note").hidden = false;
  clearTimeout(silence);
  silence = setTimeout(() => { at("note").hidden = true; }, 5000);
}

for (const id of ["take", "back", "rewind", "stop", "reset", "grip", "success", "failure", "good", "bad"]) {
  at(id).addEventListener("click", () => pressed(id));
}
at("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.value.trim()) return;
  link.say({ kind: "mark", robot: seen.chosen, what: "note", text: event.target.value.trim() });
  event.target.value = "";
  event.target.blur(); // the keys are the hand's again
});
at("relieve").addEventListener("click", () => {
  link.say({ kind: "relieve", on: seen.fleet.person !== seen.fleet.you });
});
at("logout").addEventListener("click", async () => {
  await fetch("/logout", { method: "POST" });
  location.reload();
});
at("spacemouse").hidden = !("hid" in navigator);
at("spacemouse").addEventListener("click", () => hands.connectSpaceMouse().catch((error) => tell(String(error))));
requestAnimationFrame(steer);
