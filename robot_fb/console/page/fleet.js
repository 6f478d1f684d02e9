// All robots at a glance: one card each, in the order of urgency.

import { plot } from "./plot.js";

const WORDS = {
  autonomous: "works alone", alarm: "alarm", frozen: "holds still", requested: "waits for you", leased: "is held",
  human: "in hand", rewind: "backs up", returning: "goes on", stopped: "stopped", away: "not connected",
};

export class Cards {
  constructor(list, choose) {
    this._list = list;
    this._choose = choose;
    this._cards = new Map();
  }

  show(robots, chosen) {
    const names = new Set(robots.map((robot) => robot.name));
    for (const [name, card] of this._cards) {
      if (names.has(name)) continue;
      card.item.remove();
      this._cards.delete(name);
    }
    for (const robot of robots) this._show(robot, robot.name === chosen);
    const rank = (robot) => robot.place ?? Infinity;
    const order = [...robots].sort((a, b) => Math.sign(rank(a) - rank(b)) || a.name.localeCompare(b.name));
    order.forEach((robot, i) => {
      const { item } = this._cards.get(robot.name);
      if (this._list.children[i] !== item) this._list.insertBefore(item, this._list.children[i] ?? null);
    });
  }

  _show(robot, chosen) {
    const card = this._cards.get(robot.name) ?? this._make(robot.name);
    card.item.className = `card ${robot.state}${chosen ? " chosen" : ""}`;
    card.button.setAttribute("aria-pressed", chosen);
    card.state.textContent = WORDS[robot.state] ?? robot.state;
    card.queue.textContent = robot.place ? `${robot.place}. in the queue, ${robot.waits.toFixed(1)} s` : "";
    card.holder.textContent = robot.holder ? `with ${robot.holder}` : "";
    card.about.textContent = `${robot.task} · episode ${robot.episode} · ${robot.force.toFixed(1)} N`;
    card.alarm.textContent = robot.alarm ? `last alarm: ${robot.alarm}` : "";
    plot(card.trace, robot.risks, { level: 1, count: 60 });
  }

  _make(name) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    const part = (kind, tag = "span") => {
      const made = document.createElement(tag);
      made.className = kind;
      button.append(made);
      return made;
    };
    const title = part("name", "b");
    title.textContent = name;
    const card = { item, button, state: part("badge"), queue: part("queue"), holder: part("holder") };
    card.trace = part("trace", "canvas");
    card.trace.setAttribute("aria-hidden", "true");
    Object.assign(card, { about: part("about"), alarm: part("why") });
    button.addEventListener("click", () => this._choose(name));
    item.append(button);
    this._list.append(item);
    this._cards.set(name, card);
    return card;
  }
}

export const word = (state) => WORDS[state] ?? state;
