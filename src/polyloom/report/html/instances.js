// Samples of instance sets, drawn as on the paper's slides: two dimensions at a time.

const CELL = 26;

function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Flat coordinates as points of two of their dimensions; a missing dimension is 0.
function project(flat, rank, [a, b]) {
  const points = [];
  if (rank === 0) return flat.length ? [] : [[0, 0]];
  for (let k = 0; k < flat.length; k += rank) points.push([a === null ? 0 : flat[k + a], b === null ? 0 : flat[k + b]]);
  return points;
}

// Counts points that fall on the same place.
function counted(points) {
  const found = new Map();
  for (const [a, b] of points) found.set(`${a},${b}`, { a, b, count: (found.get(`${a},${b}`)?.count || 0) + 1 });
  return [...found.values()];
}

// layers: [{points, class, radius}]; the first dimension of a pair goes to the right, the second down.
function drawPoints(layers, box, names, bounds) {
  const { low, high } = bounds, across = high[0] - low[0] + 1, down = high[1] - low[1] + 1;
  const cell = Math.max(7, Math.min(CELL, 560 / across)), left = 44, top = 40;
  const width = left + across * cell + 12, height = top + down * cell + 14;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", width });
  const x = (a) => left + (a - low[0] + 0.5) * cell, y = (b) => top + (b - low[1] + 0.5) * cell;
  const every = (count) => [1, 2, 5, 10, 20, 50, 100].find((n) => n * cell >= 22 && n * 40 >= count) || 100;
  for (let a = low[0]; a <= high[0]; a++) {
    drawing.append(svg("line", { class: "axis", x1: x(a), x2: x(a), y1: top, y2: height - 14 }));
    if (a % every(across) === 0) drawing.append(svg("text", { x: x(a), y: top - 8, "text-anchor": "middle" }, String(a)));
  }
  for (let b = low[1]; b <= high[1]; b++) {
    drawing.append(svg("line", { class: "axis", y1: y(b), y2: y(b), x1: left, x2: width - 12 }));
    if (names[1] && b % every(down) === 0) drawing.append(svg("text", { x: left - 8, y: y(b) + 4, "text-anchor": "end" }, String(b)));
  }
  drawing.append(svg("text", { x: left, y: 14, "font-weight": 600 }, `${names[0] || ""} →`));
  if (names[1]) drawing.append(svg("text", { x: 4, y: 32, "font-weight": 600 }, `${names[1]} ↓`));
  if (box) {
    drawing.append(svg("rect", { class: `box ${box.kind}`, x: x(box.low[0]) - cell / 2, y: y(box.low[1]) - cell / 2,
                                 width: box.size[0] * cell, height: box.size[1] * cell, rx: 5 }));
  }
  for (const layer of layers)
    for (const p of layer.points) {
      const title = names.map((n, k) => (n ? `${n} = ${k ? p.b : p.a}` : "")).filter(Boolean).join(", ");
      drawing.append(svg("circle", { class: layer.class, cx: x(p.a), cy: y(p.b), r: (layer.radius * cell) / CELL },
                         svg("title", {}, p.count > 1 ? `${title}: ${p.count} instances` : title)));
    }
  return drawing;
}

function boundsOf(pairs) {
  if (!pairs.length) return { low: [0, 0], high: [0, 0] };
  const of = (k, pick) => pairs.reduce((best, p) => pick(best, p[k]), pairs[0][k]);
  return { low: [of(0, Math.min), of(1, Math.min)], high: [of(0, Math.max), of(1, Math.max)] };
}

class InstanceSets {
  constructor(samples, controls, before, after, status) {
    Object.assign(this, { samples, controls, before, after, status });
    this.task = samples[0].task;
    this.sample = samples[0];
    this.at = 0;
    this.axes = null; // the two iterators that are drawn; null: chosen by extent
    this.build();
  }

  build() {
    const tasks = [...new Set(this.samples.map((s) => s.task))];
    this.taskList = this.list("task", tasks, (k) => { this.task = tasks[k]; this.choose(this.ofTask()[0]); });
    this.peList = this.list("PE", [], (k) => this.choose(this.ofTask()[k]));
    this.slider = document.createElement("input");
    Object.assign(this.slider, { type: "range", min: 0, value: 0, id: "set-index" });
    this.slider.addEventListener("input", () => { this.at = Number(this.slider.value); this.draw(); });
    this.index = document.createElement("output");
    this.index.className = "mono";
    const label = document.createElement("label");
    label.append("arrival", this.slider, this.index);
    this.controls.append(label);
    this.axisLists = ["across", "down"].map((name, k) => this.list(name, [], (axis) => { this.axes[k] = axis; this.draw(); }));
    this.choose(this.sample);
  }

  list(name, choices, onChange) {
    const label = document.createElement("label"), select = document.createElement("select");
    select.id = `set-${name}`;
    select.addEventListener("change", () => onChange(select.selectedIndex));
    label.append(name, select);
    this.controls.append(label);
    this.fill(select, choices);
    return select;
  }

  fill(select, choices) {
    select.replaceChildren(...choices.map((text) => new Option(text)));
    select.parentElement.hidden = choices.length < 2;
    select.parentElement.style.display = choices.length < 2 ? "none" : "";
  }

  ofTask() { return this.samples.filter((s) => s.task === this.task); }

  choose(sample) {
    this.sample = sample;
    this.fill(this.peList, this.ofTask().map((s) => `(${s.pe[0]}, ${s.pe[1]})`));
    this.peList.selectedIndex = this.ofTask().indexOf(sample);
    this.slider.max = Math.max(0, sample.arrivals.length - 1);
    this.at = Math.min(this.at, sample.arrivals.length - 1);
    this.slider.value = this.at = Math.max(0, this.at);
    this.slider.parentElement.style.display = sample.arrivals.length < 2 ? "none" : "";
    this.axes = this.widest(sample.placed, sample.iterators.length);
    this.axisLists.forEach((list, k) => {
      this.fill(list, sample.iterators.length > 2 ? sample.iterators : []);
      list.selectedIndex = this.axes[k];
    });
    this.draw();
  }

  // The two dimensions of the greatest extent, in order; null where there are fewer.
  widest(flat, rank) {
    const extents = Array.from({ length: rank }, (_, d) => {
      let low = Infinity, high = -Infinity;
      for (let k = d; k < flat.length; k += rank) { low = Math.min(low, flat[k]); high = Math.max(high, flat[k]); }
      return { d, extent: high - low };
    });
    const chosen = extents.sort((p, q) => q.extent - p.extent || p.d - q.d).slice(0, 2).map((e) => e.d).sort((p, q) => p - q);
    return [chosen[0] ?? null, chosen[1] ?? null];
  }

  // Shows the sets of a task that has to do with what is pointed at; "": of none.
  light(task) {
    const sample = this.samples.find((each) => each.task === task);
    if (sample && this.task !== task) {
      this.task = task;
      this.taskList.selectedIndex = [...new Set(this.samples.map((s) => s.task))].indexOf(task);
      this.choose(sample);
    }
    for (const box of [this.before, this.after]) box.parentElement.classList.toggle("lit", Boolean(sample));
  }

  draw() {
    const s = this.sample, arrival = s.arrivals[this.at];
    this.before.replaceChildren();
    this.after.replaceChildren();
    if (!arrival) { this.status.textContent = "This set is too large for a picture."; return; }
    this.index.textContent = s.index.map((name, k) => `${name} = ${arrival.index[k]}`).join(", ") || "all at once";
    this.before.append(this.drawBefore(s, arrival));
    this.after.append(this.drawAfter(s, arrival));
    this.status.textContent = this.words(s, arrival);
  }

  drawBefore(s, arrival) {
    const rank = s.iterators.length, pairs = (flat) => project(flat, rank, this.axes);
    const placed = pairs(s.placed), now = pairs(arrival.instances), extra = pairs(arrival.extraInstances);
    const everyExtra = s.arrivals.flatMap((a) => pairs(a.extraInstances));
    const layers = this.layers(now, extra);
    layers.unshift({ points: counted(placed), class: "placed", radius: 3.5 });
    const names = this.axes.map((a) => (a === null ? "" : s.iterators[a]));
    return drawPoints(layers, null, names, boundsOf([...placed, ...everyExtra, ...now]));
  }

  drawAfter(s, arrival) {
    const axes = s.rank === s.iterators.length ? this.axes : this.widest([...s.arrivals.flatMap((a) => a.points)], s.rank);
    const pairs = (flat) => project(flat, s.rank, axes), pick = (values) => axes.map((a) => (a === null ? 0 : values[a]));
    const box = arrival.box && { low: pick(arrival.box.low), size: axes.map((a) => (a === null ? 1 : arrival.box.size[a])),
                                 kind: s.strategy === "none" ? "bounding" : s.strategy };
    const all = s.arrivals.flatMap((a) => [...pairs(a.points), ...pairs(a.extraPoints)]);
    const names = axes.map((a) => (a === null ? "" : `i${a}`));
    return drawPoints(this.layers(pairs(arrival.points), pairs(arrival.extraPoints)), box, names, boundsOf(all));
  }

  // Places with proper instances only, with both, and with extra ones only.
  layers(now, extra) {
    const place = (p) => `${p.a},${p.b}`, proper = counted(now), added = counted(extra);
    const both = new Set(added.map(place)), known = new Set(proper.map(place));
    return [
      { points: proper.filter((p) => !both.has(place(p))), class: "now", radius: 8 },
      { points: proper.filter((p) => both.has(place(p))), class: "partly", radius: 8 },
      { points: added.filter((p) => !known.has(place(p))), class: "extra", radius: 7.5 },
    ];
  }

  words(s, arrival) {
    const count = (flat, rank) => (rank ? flat.length / rank : 1), proper = count(arrival.instances, s.iterators.length);
    const extra = s.iterators.length ? arrival.extraInstances.length / s.iterators.length : 0;
    const boxes = { hull: "box hull", exact: "exact box", enumerated: "box of this size", none: "bounding box (no SIMD)" };
    const parts = [`${proper} instance${proper === 1 ? "" : "s"}, ${extra} extra`];
    if (arrival.box) parts.push(`${boxes[s.strategy] || s.strategy} ${arrival.box.size.join(" × ") || "of one point"}`);
    if (s.whole) parts.push("one instruction works on the whole stream, not on one arrival");
    if (!s.complete) parts.push("a window: there are more instances or arrivals than are drawn");
    return `${parts.join("; ")}.`;
  }
}
