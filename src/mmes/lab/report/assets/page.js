"use strict";
// Charts of the report: SVG drawn from the data in the page, nothing fetched.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const data = JSON.parse(document.getElementById("data").textContent);
  const MARGIN = { top: 8, right: 12, bottom: 36, left: 62 };

  const make = (name, attributes = {}, parent = null, text = "") => {
    const element = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const html = (name, attributes = {}, parent = null, text = "") => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };

  const number = (v, digits = 4) => {
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (size >= 1e4 || size < 1e-2) return v.toExponential(digits - 2).replace("e+", "e").replace(/\.?0+e/, "e");
    return String(Number(v.toPrecision(digits)));
  };

  // An axis maps values to [0, 1] and knows where its ticks are.
  const linear = (low, high) => {
    const span = high - low || 1;
    const raw = span / 5;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find((k) => k * unit >= raw) * unit;
    const ticks = [];
    for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k += 1) ticks.push(k * step);
    // Neighbouring ticks must read differently, however narrow the range.
    const size = Math.max(Math.abs(low), Math.abs(high));
    const digits = Math.min(12, Math.max(4, Math.ceil(Math.log10(size / step)) + 1));
    return { place: (v) => (v - low) / span, value: (t) => low + t * span, ticks, digits, fits: () => true };
  };
  const logarithmic = (low, high) => {
    const a = Math.log10(low), b = Math.log10(high), span = b - a || 1;
    const ticks = [];
    if (span >= 1.5) {
      const stride = Math.max(1, Math.ceil(span / 6));
      for (let k = Math.ceil(a - 1e-9); k <= b + 1e-9; k += 1) if (k % stride === 0) ticks.push(10 ** k);
    } else {
      for (let k = Math.floor(a); k <= Math.ceil(b); k += 1)
        for (const m of span < 0.7 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 2, 5]) ticks.push(m * 10 ** k);
    }
    return {
      place: (v) => (Math.log10(v) - a) / span, value: (t) => 10 ** (a + t * span), digits: 4,
      ticks: ticks.filter((v) => v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)), fits: (v) => v > 0,
    };
  };

  class Chart {
    constructor(figure, chart) {
      this.figure = figure;
      this.chart = chart;
      this.xLog = chart.x_log;
      this.yLog = chart.y_log;
      this.hidden = new Set();
      this.zoom = null;
      this.build();
      this.draw();
      // Drawing changes the height; only a new width asks for a new drawing.
      new ResizeObserver(() => requestAnimationFrame(() => {
        if (figure.clientWidth && figure.clientWidth !== this.drawn) this.draw();
      })).observe(figure);
    }

    build() {
      const caption = html("figcaption", {}, this.figure, this.chart.title);
      const tools = html("span", { class: "tools" }, caption);
      const toggle = (label, get, set) => {
        const button = html("button", { type: "button", "aria-pressed": String(get()) }, tools, label);
        button.addEventListener("click", () => {
          set(!get());
          this.zoom = null;
          button.setAttribute("aria-pressed", String(get()));
          this.draw();
        });
      };
      toggle("log x", () => this.xLog, (v) => { this.xLog = v; });
      toggle("log y", () => this.yLog, (v) => { this.yLog = v; });
      this.svg = make("svg", { role: "img", "aria-label": `${this.chart.title}: ${this.chart.y_label} against ${this.chart.x_label}` }, this.figure);
      this.tip = html("div", { class: "tip" }, this.figure, "");
      this.legend();
      if (this.chart.note) html("p", { class: "note" }, this.figure, this.chart.note);
      this.listen();
    }

    legend() {
      const names = new Map();
      for (const s of this.chart.series) {
        if (!s.name) continue;
        const entry = names.get(s.name) || { colour: s.colour, dashed: true };
        entry.dashed = entry.dashed && s.dashed;
        names.set(s.name, entry);
      }
      if (!names.size) return;
      const box = html("div", { class: "legend" }, this.figure);
      for (const [name, look] of names) {
        const button = html("button", { type: "button", "aria-pressed": "true" }, box);
        const line = html("i", look.dashed ? { class: "dashed" } : {}, button);
        line.style.borderTopColor = look.colour;
        button.append(name);
        button.addEventListener("click", () => {
          if (!this.hidden.delete(name)) this.hidden.add(name);
          button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
          this.draw();
        });
      }
    }

    shown() { return this.chart.series.filter((s) => !this.hidden.has(s.name)); }

    range(pick, log, bandToo) {
      let low = Infinity, high = -Infinity;
      for (const s of this.shown()) {
        const lists = bandToo && s.low ? [pick(s), s.low, s.high] : [pick(s)];
        for (const list of lists) for (const v of list) {
          if (v === null || (log && v <= 0)) continue;
          if (v < low) low = v;
          if (v > high) high = v;
        }
      }
      if (low > high) return log ? [1, 10] : [0, 1];
      if (low === high) return log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
      if (log) {
        const margin = (high / low) ** 0.03;
        return [low / margin, high * margin];
      }
      const margin = (high - low) * 0.03;
      return [low >= 0 && low < margin * 3 ? 0 : low - margin, high + margin];
    }

    draw() {
      this.drawn = this.figure.clientWidth;
      const width = Math.max(240, this.drawn);
      const height = Math.round(Math.min(360, Math.max(220, width * 0.62)));
      this.size = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.setAttribute("height", height);
      this.svg.replaceChildren();
      const [x0, x1, y0, y1] = this.zoom || [
        ...this.range((s) => s.x, this.xLog, false), ...this.range((s) => s.y, this.yLog, true),
      ];
      this.x = (this.xLog ? logarithmic : linear)(x0, x1);
      this.y = (this.yLog ? logarithmic : linear)(y0, y1);
      this.axes(width, height);
      const id = `clip${Chart.count = (Chart.count || 0) + 1}`;
      const clip = make("clipPath", { id }, this.svg);
      make("rect", { x: MARGIN.left, y: MARGIN.top, width: this.size.width, height: this.size.height }, clip);
      this.plot = make("g", { "clip-path": `url(#${id})` }, this.svg);
      for (const s of this.shown()) this.curve(s);
      this.cross = make("line", { class: "cross", y1: MARGIN.top, y2: MARGIN.top + this.size.height, visibility: "hidden" }, this.svg);
      this.select = make("rect", { class: "select", y: MARGIN.top, height: this.size.height, visibility: "hidden" }, this.svg);
    }

    px(v) { return MARGIN.left + this.x.place(v) * this.size.width; }
    py(v) { return MARGIN.top + (1 - this.y.place(v)) * this.size.height; }

    axes(width, height) {
      const bottom = MARGIN.top + this.size.height;
      let last = -Infinity;
      for (const v of this.x.ticks) {
        const at = this.px(v);
        make("line", { class: "grid", x1: at, x2: at, y1: MARGIN.top, y2: bottom }, this.svg);
        const text = number(v, this.x.digits), half = text.length * 3.2;
        if (at - half > last + 6) {
          make("text", { x: at, y: bottom + 15, "text-anchor": "middle" }, this.svg, text);
          last = at + half;
        }
      }
      for (const v of this.y.ticks) {
        const at = this.py(v);
        make("line", { class: "grid", x1: MARGIN.left, x2: MARGIN.left + this.size.width, y1: at, y2: at }, this.svg);
        make("text", { x: MARGIN.left - 6, y: at + 4, "text-anchor": "end" }, this.svg, number(v, this.y.digits));
      }
      make("rect", { class: "frame", x: MARGIN.left, y: MARGIN.top, width: this.size.width, height: this.size.height }, this.svg);
      make("text", { x: MARGIN.left + this.size.width / 2, y: height - 4, "text-anchor": "middle" }, this.svg, this.chart.x_label);
      make("text", { transform: `translate(11 ${MARGIN.top + this.size.height / 2}) rotate(-90)`, "text-anchor": "middle" }, this.svg, this.chart.y_label);
    }

    good(x, y) { return x !== null && y !== null && this.x.fits(x) && this.y.fits(y); }

    path(xs, ys, steps) {
      let text = "", pen = false, before = null;
      for (let i = 0; i < xs.length; i += 1) {
        if (!this.good(xs[i], ys[i])) { pen = false; continue; }
        const px = this.px(xs[i]).toFixed(1), py = this.py(ys[i]).toFixed(1);
        text += pen ? (steps ? `H${px}V${py}` : `L${px} ${py}`) : `M${px} ${py}`;
        pen = true;
        before = py;
      }
      if (steps && before !== null) text += `H${(MARGIN.left + this.size.width).toFixed(1)}`;
      return text;
    }

    curve(s) {
      if (s.low && s.high) {
        const keep = s.x.map((v, i) => i).filter((i) => this.good(s.x[i], s.low[i]) && this.good(s.x[i], s.high[i]));
        if (keep.length > 1) {
          const up = keep.map((i) => `${this.px(s.x[i]).toFixed(1)} ${this.py(s.high[i]).toFixed(1)}`);
          const down = keep.reverse().map((i) => `${this.px(s.x[i]).toFixed(1)} ${this.py(s.low[i]).toFixed(1)}`);
          make("path", { d: `M${up.join("L")}L${down.join("L")}Z`, fill: s.colour, opacity: 0.16 }, this.plot);
        }
      }
      const line = { d: this.path(s.x, s.y, s.kind === "steps"), fill: "none", stroke: s.colour, "stroke-width": 1.8, "stroke-linejoin": "round", class: "curve" };
      if (s.dashed) line["stroke-dasharray"] = "6 4";
      make("path", line, this.plot);
      if (s.kind === "points") {
        s.x.forEach((v, i) => {
          if (this.good(v, s.y[i])) make("circle", { cx: this.px(v), cy: this.py(s.y[i]), r: 3, fill: s.dashed ? "none" : s.colour, stroke: s.colour }, this.plot);
        });
      }
    }

    at(event) {
      const box = this.svg.getBoundingClientRect();
      return Math.min(1, Math.max(0, (event.clientX - box.left - MARGIN.left) / this.size.width));
    }

    listen() {
      let from = null;
      this.svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse") from = this.at(event); });
      this.svg.addEventListener("pointermove", (event) => {
        const t = this.at(event);
        this.point(t);
        if (from === null) return;
        const a = Math.min(from, t), b = Math.max(from, t);
        this.select.setAttribute("x", MARGIN.left + a * this.size.width);
        this.select.setAttribute("width", (b - a) * this.size.width);
        this.select.setAttribute("visibility", "visible");
      });
      this.svg.addEventListener("pointerup", (event) => {
        const to = this.at(event);
        if (from !== null && Math.abs(to - from) > 0.03) {
          const a = Math.min(from, to), b = Math.max(from, to);
          this.zoom = [this.x.value(a), this.x.value(b), this.y.value(0), this.y.value(1)];
          this.draw();
        } else if (this.select) this.select.setAttribute("visibility", "hidden");
        from = null;
      });
      this.svg.addEventListener("pointerleave", () => {
        from = null;
        this.tip.textContent = "";
        this.cross.setAttribute("visibility", "hidden");
        this.select.setAttribute("visibility", "hidden");
      });
      this.svg.addEventListener("dblclick", () => { this.zoom = null; this.draw(); });
    }

    point(t) {
      const x = this.x.value(t), place = MARGIN.left + t * this.size.width;
      this.cross.setAttribute("x1", place);
      this.cross.setAttribute("x2", place);
      this.cross.setAttribute("visibility", "visible");
      const parts = [];
      for (const s of this.shown()) {
        let i = -1;
        if (s.kind === "points") {
          let gap = Infinity;
          s.x.forEach((v, k) => { const d = Math.abs(this.px(v) - place); if (d < gap) { gap = d; i = k; } });
        } else for (let k = 0; k < s.x.length && s.x[k] <= x; k += 1) i = k;
        if (i >= 0 && s.y[i] !== null) parts.push(`${s.name ? `${s.name}${s.dashed ? " (dashed)" : ""}: ` : ""}${number(s.y[i])}`);
      }
      this.tip.textContent = `${number(x)} → ${parts.slice(0, 14).join(", ")}`;
    }
  }

  // Charts are drawn a few at a time, so that the page answers meanwhile; those inside closed
  // details wait until these are opened.
  const waiting = new Set(document.querySelectorAll("figure.chart"));
  const drawSome = () => {
    const begin = performance.now();
    for (const figure of waiting) {
      if (!figure.clientWidth) continue;
      waiting.delete(figure);
      new Chart(figure, data.charts[figure.dataset.chart]);
      if (performance.now() - begin > 30) { setTimeout(drawSome); return; }
    }
  };
  document.addEventListener("toggle", drawSome, true);
  drawSome();

  // A number of a table leads to its runs: open everything around them.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  if (location.hash) open();
})();
