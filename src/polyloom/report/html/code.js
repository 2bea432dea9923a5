// The emitted C of a role with the cycles of each line; a line and what it has to do with light each other up.

const USE = 5; // numbers of a line's use: line, times, cycles at work, waiting, of microthreads

function usesOf(listing) {
  const uses = new Map();
  for (let k = 0; k < listing.uses.length; k += USE) {
    const [line, ...counts] = listing.uses.slice(k, k + USE), known = uses.get(line) || [0, 0, 0, 0];
    uses.set(line, known.map((count, i) => count + counts[i]));
  }
  return uses;
}

function cellOf(name, text, className = "") {
  const cell = document.createElement(name);
  cell.textContent = text;
  cell.className = className;
  return cell;
}

class CodeView {
  // onLine(listing, line, task) when a line is pointed at, onLine(null) when none is any more.
  constructor(listings, box, select, status, onLine) {
    Object.assign(this, { listings, box, select, status, onLine, shown: null, held: 0, onHold: () => {} });
    const order = listings.map((_, k) => k).sort((a, b) => listings[b].cycles - listings[a].cycles);
    select.append(...order.map((k) => new Option(`${listings[k].name}: ${listings[k].pes} PE${listings[k].pes === 1 ? "" : "s"}, ${listings[k].cycles.toLocaleString("en")} cycles`, k)));
    select.addEventListener("change", () => { this.release(); this.show(listings[select.value]); });
    this.listen();
    this.show(listings[order[0]]);
  }

  show(listing) {
    if (this.shown === listing) return;
    this.shown = listing;
    this.select.value = String(this.listings.indexOf(listing));
    this.uses = usesOf(listing);
    this.tasks = new Map(listing.tasks);
    const most = Math.max(1, ...[...this.uses.values()].map(([, worked, waited, beside]) => worked + waited + beside));
    const body = document.createElement("tbody");
    body.append(...listing.text.trimEnd().split("\n").map((text, k) => this.row(k + 1, text, most)));
    const table = document.createElement("table");
    table.className = "code";
    table.append(this.head(), body);
    this.rows = [...body.children];
    this.box.replaceChildren(table);
    const first = Math.min(...this.uses.keys(), this.rows.length);
    this.box.scrollTop = this.rows[first - 1].offsetTop - 40;
  }

  head() {
    const head = document.createElement("thead"), row = document.createElement("tr");
    row.append(...["cycles", "waits", "times", "line", ""].map((text) => cellOf("th", text)));
    head.append(row);
    return head;
  }

  row(line, text, most) {
    const row = document.createElement("tr"), use = this.uses.get(line);
    row.dataset.line = line;
    const [times, worked, waited, beside] = use || [0, 0, 0, 0], number = (n) => (use && n ? n.toLocaleString("en") : "");
    const cycles = cellOf("td", number(worked + beside), "number");
    if (use) cycles.style.background = this.bar([[worked, "task"], [beside, "microthread"], [waited, "wait"]], most);
    row.append(cycles, cellOf("td", number(waited), "number"), cellOf("td", number(times), "number"),
               cellOf("td", line, "number quiet"), cellOf("td", text));
    return row;
  }

  bar(parts, most) {
    let at = 0;
    const stops = parts.map(([count, kind]) => {
      const from = at;
      at += (100 * count) / most;
      return `var(--${kind}-soft) ${from}% ${at}%`;
    });
    return `linear-gradient(to right, ${stops.join(", ")}, transparent ${at}%)`;
  }

  words(line) {
    const use = this.uses.get(line), task = this.tasks.get(line), listing = this.shown, pes = listing.pes;
    if (!use) return `line ${line}${task ? `, of task ${task}` : ""}`;
    const [times, worked, waited, beside] = use, each = (n) => (n / pes).toLocaleString("en", { maximumFractionDigits: 1 });
    const parts = [`${each(worked)} cycles on each of ${pes} PE${pes === 1 ? "" : "s"} (${((100 * worked) / Math.max(1, listing.cycles)).toFixed(1)} % of what they do)`];
    if (waited) parts.push(`${each(waited)} waiting`);
    if (beside) parts.push(`${each(beside)} of microthreads`);
    parts.push(`reached ${each(times)} times`);
    return `line ${line}${task ? `, of task ${task}` : ""}: ${parts.join(", ")}`;
  }

  // ---- What is lit

  point(line) {
    for (const row of this.rows) row.classList.toggle("lit", row.dataset.line === String(line));
    this.status.textContent = line ? this.words(line) : "";
    this.onLine(line ? this.shown : null, line, this.tasks.get(line) || "");
  }

  release() { this.held = 0; this.point(0); }

  // Whether anything was counted for a line.
  counted(listing, line) {
    for (let k = 0; k < listing.uses.length; k += USE) if (listing.uses[k] === line) return true;
    return false;
  }

  // From elsewhere: shows and lights a line without asking back.
  light(listing, line) {
    this.show(listing);
    for (const row of this.rows) row.classList.toggle("lit", row.dataset.line === String(line));
    this.status.textContent = this.words(line);
    const row = this.rows[line - 1];
    if (row) this.box.scrollTop = row.offsetTop - this.box.clientHeight / 2;
  }

  // ---- What a person does

  listen() {
    const lineOf = (event) => Number(event.target.closest("tr")?.dataset.line || 0);
    this.box.addEventListener("pointerover", (e) => { if (!this.held && lineOf(e)) this.point(lineOf(e)); });
    this.box.addEventListener("pointerleave", () => { if (!this.held) this.point(0); });
    this.box.addEventListener("click", (e) => {
      const line = lineOf(e);
      this.held = line === this.held ? 0 : line;
      if (this.held) this.onHold(this.shown);
      this.point(line);
    });
    this.box.addEventListener("keydown", (e) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (e.key === "Escape") this.release();
      else if (step) {
        this.held = Math.max(1, Math.min(this.rows.length, this.held + step));
        this.point(this.held);
        const row = this.rows[this.held - 1];
        if (row.offsetTop < this.box.scrollTop + 30 || row.offsetTop > this.box.scrollTop + this.box.clientHeight - 30)
          this.box.scrollTop = row.offsetTop - this.box.clientHeight / 2;
      } else return;
      e.preventDefault();
    });
  }
}
