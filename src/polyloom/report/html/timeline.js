// Time lines of chosen PEs: a lane for the main thread, SIMD, each microthread and each way out of the router.

const KINDS = ["task", "simd", "microthread", "link", "wait"]; // as TraceKind
const KIND_LABELS = { task: "task", simd: "SIMD instruction", microthread: "instruction beside the main thread",
                      link: "wavelets leave the router", wait: "waits" };
const WAYS = ["to north", "to south", "to east", "to west", "to the PE"];
const LANE = 20, NAMES = 104;

// Flat rows of seven numbers as objects.
function eventsOf(line, names) {
  const events = [];
  for (let k = 0; k < line.events.length; k += 7) {
    const [start, duration, kind, lane, name, count, at] = line.events.slice(k, k + 7);
    events.push({ start, duration, kind: KINDS[kind], lane, name: names[name], count, line: at });
  }
  return events;
}

function laneOf(event) {
  if (event.kind === "link") return { order: 100 + event.lane, label: WAYS[event.lane] };
  if (event.kind === "microthread") return { order: 10 + event.lane, label: `microthread ${event.lane}` };
  return event.kind === "simd" ? { order: 1, label: "SIMD" } : { order: 0, label: "main" };
}

function describe(event) {
  const joined = event.count > 1 ? ` × ${event.count}` : "";
  return `${event.name}${joined}: ${KIND_LABELS[event.kind]}, cycle ${event.start} to ${event.start + event.duration} (${event.duration})`;
}

class Timelines {
  constructor(box, data, status) {
    Object.assign(this, { box, status, names: data.timelines.names, cycles: Math.max(1, data.cycles) });
    this.byPe = new Map(data.timelines.pes.map((line) => [`${line.x},${line.y}`, line]));
    this.lines = []; // those that are shown
    this.lit = null; // (pe, event) => whether it is not dimmed
    this.span = null; // of cycles, that is marked
    this.onEvent = () => {}; // (pe, event or undefined) when one is pointed at
    this.fit();
    new ResizeObserver(() => this.draw()).observe(box);
  }

  has(pe) { return this.byPe.has(`${pe.x},${pe.y}`); }

  show(pes) {
    this.box.replaceChildren();
    this.lines = pes.map((pe) => this.add(pe)).filter(Boolean);
    this.draw();
    return this.lines;
  }

  add(pe) {
    const line = this.byPe.get(`${pe.x},${pe.y}`), section = document.createElement("div"), title = document.createElement("h3");
    section.className = "lanes";
    section.append(title);
    this.box.append(section);
    title.textContent = `PE (${pe.x}, ${pe.y})`;
    if (!line) {
      const note = document.createElement("p");
      note.className = "quiet";
      note.textContent = "No time line was recorded for this PE: it did nothing, or the rectangle is large. Those in the list have one; --watch X,Y records more.";
      section.append(note);
      return null;
    }
    const events = eventsOf(line, this.names);
    if (events.length < line.total) title.textContent += `, the first ${events.length} of ${line.total} events`;
    const lanes = [...new Map(events.map((e) => [laneOf(e).order, laneOf(e).label])).entries()].sort((a, b) => a[0] - b[0]);
    const canvas = document.createElement("canvas");
    canvas.style.height = `${LANE * lanes.length + 26}px`;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Time line of PE (${pe.x}, ${pe.y}), ${events.length} events; arrow keys move, + and - zoom`);
    section.append(canvas);
    const shown = { pe, events, canvas, rows: new Map(lanes.map(([order], row) => [order, row])), labels: lanes.map((l) => l[1]) };
    this.listen(shown);
    return shown;
  }

  // ---- What is where

  fit() { this.from = 0; this.to = this.cycles; this.draw(); }

  zoom(factor, at = 0.5) {
    const middle = this.from + at * (this.to - this.from), span = Math.max(8, Math.min(this.cycles * 1.2, (this.to - this.from) * factor));
    this.from = middle - at * span;
    this.to = this.from + span;
    this.draw();
  }

  move(share) {
    const by = share * (this.to - this.from);
    this.from += by;
    this.to += by;
    this.draw();
  }

  xOf(cycle, width) { return NAMES + ((cycle - this.from) / (this.to - this.from)) * (width - NAMES - 8); }

  eventAt(line, event) {
    const row = Math.floor(event.offsetY / LANE), width = line.canvas.clientWidth;
    const hit = line.events.filter((e) => line.rows.get(laneOf(e).order) === row
      && this.xOf(e.start, width) - 2 <= event.offsetX && event.offsetX <= Math.max(this.xOf(e.start + e.duration, width), this.xOf(e.start, width) + 2));
    return hit[hit.length - 1];
  }

  // ---- Drawing

  draw() { if (this.lines) for (const line of this.lines) this.drawLine(line); }

  drawLine(line) {
    const { context, width, height } = sharp(line.canvas);
    this.drawOn(context, width, height, line);
  }

  drawOn(context, width, height, line) {
    context.clearRect(0, 0, width, height);
    this.drawRuler(context, width, height);
    if (this.span) this.drawSpan(context, width, height);
    context.save();
    context.beginPath();
    context.rect(NAMES, 0, width - NAMES, height);
    context.clip();
    for (const wanted of [false, true]) // waits lie over the tasks that wait
      for (const event of line.events) if ((event.kind === "wait") === wanted) this.drawEvent(context, width, line, event);
    context.restore();
    context.globalAlpha = 1;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = paint("--ink");
    line.labels.forEach((label, row) => context.fillText(label, NAMES - 8, (row + 0.5) * LANE));
  }

  drawSpan(context, width, height) {
    const [from, to] = this.span.map((cycle) => Math.max(NAMES, this.xOf(cycle, width)));
    context.fillStyle = paint("--line");
    context.fillRect(from, 0, Math.max(to - from, 1.5), height - 18);
  }

  drawRuler(context, width, height) {
    const span = this.to - this.from, rough = span / Math.max(2, (width - NAMES) / 80), power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
    context.strokeStyle = paint("--line");
    context.fillStyle = paint("--quiet");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    context.lineWidth = 1;
    for (let cycle = Math.ceil(this.from / step) * step; cycle <= this.to; cycle += step) {
      const x = this.xOf(cycle, width);
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, height - 18);
      context.stroke();
      context.fillText(cycle.toLocaleString("en"), x, height - 5);
    }
  }

  drawEvent(context, width, line, event) {
    const x = this.xOf(event.start, width), end = this.xOf(event.start + event.duration, width);
    if (end < NAMES || x > width) return;
    const row = line.rows.get(laneOf(event).order), wide = Math.max(end - x - (end - x > 4 ? 1 : 0), 1.2), top = row * LANE + 2;
    context.globalAlpha = !this.lit || this.lit(line.pe, event) ? 1 : 0.15;
    context.fillStyle = paint(`--${event.kind}`);
    context.fillRect(x, top, wide, LANE - 4);
    if (event.kind === "wait") this.hatch(context, width, x, top, wide);
    if (event.kind === "link" && event.count > 1 && wide > 6) context.clearRect(x + 2, top + LANE - 8, wide - 4, 2);
    if (wide < 26) return;
    context.fillStyle = event.kind === "wait" ? paint("--ink") : event.kind === "simd" ? "#000000" : paint("--on-bar");
    context.font = "11px ui-monospace, 'DejaVu Sans Mono', monospace";
    context.textAlign = "left";
    context.textBaseline = "middle";
    const text = event.count > 1 ? `${event.name} ×${event.count}` : event.name, left = Math.max(x, NAMES) + 4;
    const room = Math.floor((x + wide - left) / 6.7);
    if (room >= 3) context.fillText(text.length > room ? `${text.slice(0, room - 1)}…` : text, left, top + LANE / 2 - 2);
  }

  hatch(context, width, x, top, wide) {
    context.strokeStyle = paint("--quiet");
    context.lineWidth = 1;
    context.save();
    context.beginPath();
    context.rect(x, top, wide, LANE - 4);
    context.clip();
    context.beginPath();
    const first = Math.max(x, 0) - LANE, last = Math.min(x + wide, width);
    for (let at = first - (first % 7); at < last; at += 7) {
      context.moveTo(at, top + LANE);
      context.lineTo(at + LANE, top);
    }
    context.stroke();
    context.restore();
  }

  // All that are shown, one below the other.
  asSvg() {
    const sizes = this.lines.map((line) => line.canvas.clientHeight + 20), width = this.box.clientWidth;
    const parts = this.lines.map((line, k) => {
      const top = sizes.slice(0, k).reduce((sum, size) => sum + size, 0);
      const context = new SvgContext(width, line.canvas.clientHeight);
      this.drawOn(context, width, line.canvas.clientHeight, line);
      return `<g transform="translate(0 ${top})"><text x="4" y="14" font-size="12" font-family="sans-serif" fill="${paint("--ink")}">PE (${line.pe.x}, ${line.pe.y})</text>`
        + `<g transform="translate(0 20)">${context.text()}</g></g>`;
    });
    const height = sizes.reduce((sum, size) => sum + size, 0);
    return `<svg xmlns="${SVG}" width="${width}" height="${height}"><rect width="100%" height="100%" fill="${paint("--surface")}"/>${parts.join("")}</svg>`;
  }

  // ---- What a person does

  listen(line) {
    let drag = null;
    line.canvas.addEventListener("pointerdown", (e) => { drag = e.offsetX; line.canvas.setPointerCapture(e.pointerId); });
    line.canvas.addEventListener("pointerup", () => { drag = null; });
    line.canvas.addEventListener("pointermove", (e) => {
      if (drag !== null) {
        this.move((drag - e.offsetX) / (line.canvas.clientWidth - NAMES));
        drag = e.offsetX;
        return;
      }
      const event = this.eventAt(line, e);
      this.status.textContent = event ? `PE (${line.pe.x}, ${line.pe.y}): ${describe(event)}` : "";
      this.onEvent(line.pe, event);
    });
    line.canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaX) < Math.abs(e.deltaY) && document.activeElement !== line.canvas) return;
      e.preventDefault();
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.move(e.deltaX / line.canvas.clientWidth);
      else this.zoom(e.deltaY < 0 ? 0.8 : 1.25, (e.offsetX - NAMES) / (line.canvas.clientWidth - NAMES));
    }, { passive: false });
    line.canvas.addEventListener("keydown", (e) => {
      const act = { ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), "+": () => this.zoom(0.7),
                    "-": () => this.zoom(1 / 0.7), 0: () => this.fit() }[e.key];
      if (!act) return;
      act();
      e.preventDefault();
    });
  }
}
