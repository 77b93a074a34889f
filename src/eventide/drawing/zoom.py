"""The script that zooms into a drawing: it shows a part of its time.

The script is part of the page: it makes no requests, reads only numbers, and moves marks that are
already drawn. Without it the whole drawing is there, as in an SVG file.
"""

ZOOM_CONTROLS = """<div class="zoom" hidden>
<button type="button" data-by="2" title="Come nearer (Ctrl and wheel)">+</button>
<button type="button" data-by="0.5" title="Go back">\u2212</button>
<button type="button" data-by="0" title="Show all of it">Whole</button>
<input type="range" min="0" max="1" step="any" value="0" aria-label="Scroll through time">
<output></output></div>"""

ZOOM_SCRIPT = """
(() => {
  "use strict";
  const S = 1e6, M = 6e7, H = 3.6e9, D = 8.64e10;
  const steps = [];
  for (let p = 1; p < S; p *= 10) steps.push(p, 2 * p, 5 * p);
  for (const [unit, counts] of [[S, [1, 2, 5, 10, 15, 30]], [M, [1, 2, 5, 10, 15, 30]],
    [H, [1, 2, 3, 6, 12]], [D, [1, 2, 7, 14, 30, 90, 365, 3650, 36500]]])
    for (const count of counts) steps.push(unit * count);
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const two = n => String(n).padStart(2, "0");
  const label = (us, step) => {
    const at = new Date(Math.floor(us / 1000));
    const day = at.getUTCDate() + " " + months[at.getUTCMonth()];
    if (step >= 30 * D) return day + " " + at.getUTCFullYear();
    if (us % D === 0) return day;
    let said = two(at.getUTCHours()) + ":" + two(at.getUTCMinutes());
    if (step < M) said += ":" + two(at.getUTCSeconds());
    const digits = step < S ? 6 - Math.floor(Math.log10(step)) : 0;
    const below = String(((us % S) + S) % S).padStart(6, "0");
    return digits ? said + "." + below.slice(0, digits) : said;
  };
  const mark = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  for (const controls of document.querySelectorAll(".zoom")) {
    const svg = controls.parentElement.querySelector("svg[data-left]");
    if (!svg) continue;
    const left = +svg.dataset.left, right = +svg.dataset.right, wide = right - left;
    const lines = [...svg.querySelectorAll(".ev-timeline")];
    const whole = new Map();
    for (const each of svg.querySelectorAll(".ev-lines, .ev-labels"))
      whole.set(each, [...each.childNodes]);
    const scroll = controls.querySelector("input"), told = controls.querySelector("output");
    let from = 0, share = 1;
    const draw = () => {
      share = Math.min(Math.max(share, 1e-6), 1);
      from = Math.min(Math.max(from, 0), 1 - share);
      for (const line of lines) {
        const length = +line.dataset.length, start = +line.dataset.start;
        const x = us => left + (us / length - from) / share * wide;
        for (const bar of line.querySelectorAll("[data-s]")) {
          const open = bar.dataset.e === undefined, goes = bar.classList.contains("ev-goes-on");
          const end = open ? (goes ? right - 7 : right) : x(+bar.dataset.e);
          const a = Math.max(x(+bar.dataset.s), left), b = Math.min(end, right);
          bar.style.display = b < left || a > right ? "none" : "";
          bar.setAttribute("x", a.toFixed(1));
          bar.setAttribute("width", Math.max(b - a, goes ? 0 : Math.min(2, right - a)).toFixed(1));
        }
        for (const tip of line.querySelectorAll("[data-tip]"))
          tip.style.display = x(+tip.dataset.tip) > right ? "none" : "";
        for (const each of line.querySelectorAll("[data-at]")) {
          const at = x(+each.dataset.at);
          each.style.display = at < left - 1 || at > right + 1 ? "none" : "";
          if (each.dataset.y) each.setAttribute("transform", `translate(${at} ${each.dataset.y})`);
          else if (each.tagName === "line") {
            each.setAttribute("x1", at);
            each.setAttribute("x2", at);
          } else {
            const near = at < left + 45 ? "start" : at > right - 45 ? "end" : "middle";
            each.setAttribute("text-anchor", near);
            each.setAttribute("x", near === "start" ? left : near === "end" ? right : at);
          }
        }
        const first = start + from * length, last = first + share * length;
        const step = steps.find(each => (last - first) / each < wide / 110) || 36500 * D;
        const ticks = [];
        for (let at = Math.ceil(first / step) * step; at <= last && ticks.length < 40; at += step)
          ticks.push(at);
        for (const part of line.querySelectorAll(".ev-lines, .ev-labels")) {
          if (share === 1) { part.replaceChildren(...whole.get(part)); continue; }
          const { top, bottom } = part.dataset;
          if (top !== undefined) {
            part.replaceChildren(...ticks.map(at => mark("line", { class: "ev-grid",
              x1: x(at - start), x2: x(at - start), y1: top, y2: bottom })));
            continue;
          }
          const axis = mark("line",
            { class: "ev-axis", x1: left, x2: right, y1: bottom, y2: bottom });
          const day = new Date(Math.floor(first / 1000)).toISOString().slice(0, 10);
          part.replaceChildren(axis, ...ticks.map(at => mark("text", { class: "ev-num",
            x: x(at - start), y: +bottom + 16,
            "text-anchor": x(at - start) > right - 15 ? "end" : "middle" }, label(at, step))),
            mark("text", { class: "ev-num", x: left, y: +bottom + 32 }, day + ", UTC"));
        }
      }
      scroll.disabled = share === 1;
      scroll.value = share === 1 ? 0 : from / (1 - share);
      told.textContent = share === 1 ? "" : Math.round(1 / share).toLocaleString("en") + "\u00d7";
    };
    const zoom = (by, at) => {
      const middle = from + at * share;
      share = by === 0 ? 1 : share / by;
      share = Math.min(Math.max(share, 1e-6), 1);
      from = middle - at * share;
      draw();
    };
    const place = event => {
      const box = svg.getBoundingClientRect();
      const unit = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      return Math.min(Math.max((unit - left) / wide, 0), 1);
    };
    controls.addEventListener("click", event => {
      if (event.target.dataset.by) zoom(+event.target.dataset.by, 0.5);
    });
    scroll.addEventListener("input", () => { from = scroll.value * (1 - share); draw(); });
    svg.addEventListener("dblclick", event => zoom(4, place(event)));
    svg.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const moved = event.deltaY || event.deltaX;
      if (event.shiftKey) { from += Math.sign(moved) * share / 10; draw(); }
      else zoom(moved < 0 ? 1.5 : 1 / 1.5, place(event));
    }, { passive: false });
    let held = null;
    svg.addEventListener("pointerdown", event => { held = place(event) * share + from; });
    svg.addEventListener("pointermove", event => {
      if (held !== null && share < 1) { from = held - place(event) * share; draw(); }
    });
    window.addEventListener("pointerup", () => { held = null; });
    controls.hidden = false;
    draw();
  }
})();
"""
