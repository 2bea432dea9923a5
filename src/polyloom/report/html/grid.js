// The grid of PEs as a heat map, with the routes of chosen colors drawn over it.

// cividis: also readable for the colour-blind, and in grey.
const CIVIDIS = [[0, 32, 81], [17, 54, 108], [60, 77, 110], [98, 100, 111], [127, 124, 117], [154, 148, 120],
                 [187, 175, 113], [226, 203, 92], [253, 234, 69]];
// Okabe and Ito's colours, for what has no order.
const CATEGORIES = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#999999"];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const SIDES = { north: [0, -1], south: [0, 1], east: [1, 0], west: [-1, 0], ramp: [0, 0] };

function heat(share) {
  const at = Math.max(0, Math.min(1, share)) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return CIVIDIS[low].map((c, k) => Math.round(c + (CIVIDIS[low + 1][k] - c) * (at - low)));
}

function rgbOf(hex) {
  return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
}

function inkOn([r, g, b]) {
  return 0.3 * r + 0.59 * g + 0.11 * b > 135 ? "#000000" : "#ffffff";
}

// Fits a canvas to its box on the screen; returns its context in CSS pixels.
function sharp(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height };
}

class GridView {
  constructor(canvas, data, layers, routes, onChoose, onFocus) {
    Object.assign(this, { canvas, layers, routes, onChoose, onFocus });
    this.boxes = data.boxes || []; // named rectangles of PEs
    this.columns = data.grid.width;
    this.rows = data.grid.height;
    this.layer = layers[0];
    this.shown = new Set(); // colors
    this.chosen = []; // PEs
    this.focus = null;
    this.size = 1; // of a PE, in pixels
    this.left = this.top = 0;
    this.marked = null; // what is dimmed, as a canvas with a pixel for each PE
    this.map = document.createElement("canvas"); // a pixel for each PE
    this.map.width = this.columns;
    this.map.height = this.rows;
    this.paintMap();
    this.listen();
    this.fit();
  }

  // ---- What is where

  fit() {
    const { clientWidth: w, clientHeight: h } = this.canvas, margin = 26;
    this.size = Math.min((w - 2 * margin) / this.columns, (h - 2 * margin) / this.rows, 110);
    this.left = (w - this.size * this.columns) / 2;
    this.top = (h - this.size * this.rows) / 2;
    this.draw();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const size = Math.max(0.25, Math.min(160, this.size * factor));
    this.left = x - ((x - this.left) * size) / this.size;
    this.top = y - ((y - this.top) * size) / this.size;
    this.size = size;
    this.draw();
  }

  peAt(event) {
    const x = Math.floor((event.offsetX - this.left) / this.size), y = Math.floor((event.offsetY - this.top) / this.size);
    return x >= 0 && y >= 0 && x < this.columns && y < this.rows ? { x, y } : null;
  }

  visible() {
    const first = (from) => Math.max(0, Math.floor(-from / this.size));
    const last = (from, extent, count) => Math.min(count - 1, Math.floor((extent - from) / this.size));
    return { x0: first(this.left), y0: first(this.top), x1: last(this.left, this.canvas.clientWidth, this.columns),
             y1: last(this.top, this.canvas.clientHeight, this.rows) };
  }

  colorAt(k) {
    const value = this.layer.values.at(k), { minimum, maximum, names } = this.layer;
    if (names) return value < 0 ? [128, 128, 128] : rgbOf(CATEGORIES[value % CATEGORIES.length]);
    return heat(maximum > minimum ? (value - minimum) / (maximum - minimum) : maximum > 0 ? 1 : 0);
  }

  // ---- Drawing

  paintMap() {
    const context = this.map.getContext("2d"), image = context.createImageData(this.columns, this.rows);
    for (let k = 0; k < this.columns * this.rows; k++) {
      const [r, g, b] = this.colorAt(k);
      image.data.set([r, g, b, 255], 4 * k);
    }
    context.putImageData(image, 0, 0);
  }

  draw() {
    const { context, width, height } = sharp(this.canvas);
    this.drawOn(context, width, height);
  }

  drawOn(context, width, height) {
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = this.size < 1;
    this.drawMap(context, this.layer.canvas || this.map, this.layer.side || 1);
    if (this.marked) this.drawMap(context, this.marked, 1);
    if (this.size >= 7) this.drawLines(context);
    if (this.size >= 34 && this.layer.values) this.drawValues(context);
    this.drawAxes(context);
    for (const box of this.boxes) this.drawBox(context, box);
    this.drawRoutes(context);
    for (const pe of this.chosen) this.outline(context, pe, 3);
    if (this.focus) this.outline(context, this.focus, 1.5);
  }

  // A canvas with a pixel for each `side` x `side` PEs; those at the edges may have fewer.
  drawMap(context, map, side) {
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.size * this.columns, this.size * this.rows);
    context.clip();
    context.drawImage(map, this.left, this.top, this.size * side * map.width, this.size * side * map.height);
    context.restore();
  }

  // Dims the PEs of which `lit` says no; null: none.
  mark(lit) {
    this.marked = lit && this.pixels((k) => !lit(k), [...rgbOf(paint("--surface")), 205]);
    this.draw();
  }

  drawLines(context) {
    const { x0, y0, x1, y1 } = this.visible();
    context.strokeStyle = paint("--surface");
    context.lineWidth = this.size > 20 ? 2 : 1;
    context.beginPath();
    for (let x = x0; x <= x1 + 1; x++) {
      context.moveTo(this.left + x * this.size, this.top + y0 * this.size);
      context.lineTo(this.left + x * this.size, this.top + (y1 + 1) * this.size);
    }
    for (let y = y0; y <= y1 + 1; y++) {
      context.moveTo(this.left + x0 * this.size, this.top + y * this.size);
      context.lineTo(this.left + (x1 + 1) * this.size, this.top + y * this.size);
    }
    context.stroke();
  }

  drawValues(context) {
    const { x0, y0, x1, y1 } = this.visible();
    context.font = "11px ui-monospace, 'DejaVu Sans Mono', monospace";
    context.textAlign = "right"; // beside the routes
    context.textBaseline = "bottom";
    for (let y = y0; y <= y1; y++)
      for (let x = x0; x <= x1; x++) {
        const k = y * this.columns + x, value = this.layer.values.at(k);
        const text = this.layer.names ? (value < 0 ? "–" : String.fromCharCode(65 + (value % 26))) : short(value);
        context.fillStyle = inkOn(this.colorAt(k));
        context.fillText(text, this.left + (x + 1) * this.size - 4, this.top + (y + 1) * this.size - 3, this.size - 6);
      }
  }

  drawBox(context, { name, x: [x0, x1], y: [y0, y1] }) {
    const left = this.left + x0 * this.size, top = this.top + y0 * this.size;
    const width = (x1 + 1 - x0) * this.size, height = (y1 + 1 - y0) * this.size;
    context.strokeStyle = paint("--ink");
    context.lineWidth = 1;
    context.strokeRect(left, top, width, height);
    if (width < 6.5 * name.length || height < 12) return;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillStyle = paint("--surface");
    context.fillRect(left + 1, top + 1, 6.2 * name.length + 4, 13);
    context.fillStyle = paint("--ink");
    context.fillText(name, left + 3, top + 2);
  }

  drawAxes(context) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200].find((n) => n * this.size >= 26) || 500;
    context.fillStyle = paint("--quiet");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "bottom";
    for (let x = 0; x < this.columns; x += step)
      context.fillText(x, this.left + (x + 0.5) * this.size, Math.max(this.top - 9, 12));
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let y = 0; y < this.rows; y += step)
      context.fillText(y, Math.max(this.left - 10, 18), this.top + (y + 0.5) * this.size);
  }

  drawRoutes(context) {
    const shown = [...this.shown].sort((a, b) => a - b);
    shown.forEach((color, k) => {
      const shift = shown.length > 1 ? (k / (shown.length - 1) - 0.5) * Math.min(this.size * 0.44, 6 * shown.length) : 0;
      for (const route of this.routes)
        if (route.color === color) this.size >= 5 ? this.drawRoute(context, route, shift) : this.tint(context, route);
    });
  }

  // Where the PEs are too small for lines: a tint of each PE that the route passes.
  tint(context, route) {
    route.tint ??= this.pixels((k) => route.on.test(k), [...rgbOf(CATEGORIES[(route.color + 5) % CATEGORIES.length]), 150]);
    this.drawMap(context, route.tint, 1);
  }

  // A canvas with a pixel for each PE, coloured where it is wanted.
  pixels(wanted, rgba) {
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    canvas.width = this.columns;
    canvas.height = this.rows;
    const image = context.createImageData(this.columns, this.rows);
    for (let k = 0; k < this.columns * this.rows; k++) if (wanted(k)) image.data.set(rgba, 4 * k);
    context.putImageData(image, 0, 0);
    return canvas;
  }

  drawRoute(context, route, shift) {
    const { x0, y0, x1, y1 } = this.visible();
    context.lineCap = "butt";
    for (const [style, width] of [[paint("--surface"), 5], [CATEGORIES[(route.color + 5) % CATEGORIES.length], 2.5]]) {
      context.strokeStyle = context.fillStyle = style;
      context.lineWidth = this.size > 16 ? width : width / 2;
      context.setLineDash(width < 5 ? DASHES[route.color % DASHES.length] : []);
      for (let y = y0; y <= y1; y++)
        for (let x = x0; x <= x1; x++)
          if (route.on.test(y * this.columns + x)) this.drawTurn(context, route, x, y, shift);
    }
    context.setLineDash([]);
  }

  drawTurn(context, route, x, y, shift) {
    const half = this.size / 2, cx = this.left + (x + 0.5) * this.size + shift, cy = this.top + (y + 0.5) * this.size + shift;
    const [sx, sy] = SIDES[route.source], dot = Math.max(1.5, this.size / 14);
    context.beginPath();
    for (const target of route.targets) {
      const [tx, ty] = SIDES[target];
      context.moveTo(cx + sx * half, cy + sy * half);
      context.lineTo(cx, cy);
      context.lineTo(cx + tx * half, cy + ty * half);
    }
    context.stroke();
    context.beginPath();
    if (route.source === "ramp") context.rect(cx - dot, cy - dot, 2 * dot, 2 * dot);
    if (route.targets.includes("ramp")) context.arc(cx, cy, dot * 1.3, 0, 7);
    context.fill();
    if (this.size >= 22) for (const target of route.targets) this.drawHead(context, cx, cy, target);
  }

  drawHead(context, cx, cy, target) {
    const [tx, ty] = SIDES[target], at = this.size / 2 - 2, wing = 4.5;
    if (!tx && !ty) return;
    context.beginPath();
    context.moveTo(cx + tx * at, cy + ty * at);
    context.lineTo(cx + tx * (at - 7) - ty * wing, cy + ty * (at - 7) - tx * wing);
    context.lineTo(cx + tx * (at - 7) + ty * wing, cy + ty * (at - 7) + tx * wing);
    context.fill();
  }

  outline(context, { x, y }, width) {
    const size = Math.max(this.size, 5), box = [this.left + x * this.size, this.top + y * this.size, size, size];
    for (const [style, more] of [[paint("--surface"), 3], [paint("--ink"), 0]]) {
      context.strokeStyle = style;
      context.lineWidth = width + more;
      context.strokeRect(...box);
    }
  }

  // ---- What a person does

  listen() {
    const canvas = this.canvas;
    let drag = null, moved = false;
    canvas.addEventListener("pointerdown", (e) => { drag = { x: e.offsetX, y: e.offsetY }; moved = false; });
    canvas.addEventListener("pointermove", (e) => {
      if (drag && (moved || Math.hypot(e.offsetX - drag.x, e.offsetY - drag.y) > 4)) {
        moved = true;
        this.left += e.offsetX - drag.x;
        this.top += e.offsetY - drag.y;
        drag = { x: e.offsetX, y: e.offsetY };
        this.draw();
      } else this.look(this.peAt(e));
    });
    canvas.addEventListener("pointerup", (e) => {
      const pe = this.peAt(e);
      if (drag && !moved && pe) { this.look(pe); this.choose(pe, e.shiftKey || e.ctrlKey); }
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => { drag = null; });
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.zoom(e.deltaY < 0 ? 1.25 : 0.8, e.offsetX, e.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => this.key(e));
    new ResizeObserver(() => this.fit()).observe(canvas);
  }

  key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const here = this.focus || this.chosen[0] || { x: 0, y: 0 };
    if (step) {
      const keep = (value, count) => Math.max(0, Math.min(count - 1, value)), far = event.shiftKey ? 10 : 1;
      this.look({ x: keep(here.x + far * step[0], this.columns), y: keep(here.y + far * step[1], this.rows) });
      this.bringIntoView();
    } else if (event.key === "Enter") this.choose(here, false);
    else if (event.key === " ") this.choose(here, true);
    else if (event.key === "+") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  bringIntoView() {
    const x = this.left + (this.focus.x + 0.5) * this.size, y = this.top + (this.focus.y + 0.5) * this.size;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    if (x < 0 || x > w) this.left += w / 2 - x;
    if (y < 0 || y > h) this.top += h / 2 - y;
    this.draw();
  }

  look(pe) {
    if (!pe || (this.focus && this.focus.x === pe.x && this.focus.y === pe.y)) return;
    this.focus = pe;
    this.onFocus(pe);
    this.draw();
  }

  choose(pe, more) {
    const same = (other) => other.x === pe.x && other.y === pe.y;
    if (!more) this.chosen = [pe];
    else this.chosen = this.chosen.some(same) ? this.chosen.filter((other) => !same(other)) : [...this.chosen, pe];
    this.onChoose(this.chosen);
    this.draw();
  }

  show(layer) {
    this.layer = layer;
    if (layer.values) this.paintMap();
    this.draw();
  }
}

function short(value) { // 12345 as 12k
  const sizes = [[1e9, "G"], [1e6, "M"], [1e4, "k"]];
  for (const [unit, letter] of sizes) if (value >= unit) return (value / (unit === 1e4 ? 1e3 : unit)).toFixed(value < 10 * unit ? 1 : 0) + letter;
  return String(Math.round(value));
}
