// Puts the page together; `one.js` and `layers.js` begin it.

let data; // what the page, or the chosen layer, shows
let leave = () => {}; // ends what goes on in what is shown
const $ = (id) => document.getElementById(id);

function theme() {
  const button = $("theme"), wanted = window.matchMedia("(prefers-color-scheme: dark)");
  const set = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = name === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `switch to ${button.textContent} colours`);
    document.dispatchEvent(new Event("theme"));
  };
  set(wanted.matches ? "dark" : "light");
  button.hidden = false;
  button.addEventListener("click", () => set(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  wanted.addEventListener("change", () => set(wanted.matches ? "dark" : "light"));
}

// Returns what chooses a layer, as a press of its button does.
function layerButtons(grid, layers, legends) {
  const buttons = layers.map((layer) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: layer.label });
    button.dataset.layer = layer.name;
    button.addEventListener("click", () => choose(layer));
    return button;
  });
  const choose = (layer) => {
    buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.layer === layer.name)));
    grid.show(layer);
    $("grid-legend").replaceChildren(...(legends[layer.name] || legendOf)(layer));
  };
  $("layers").append(...buttons);
  choose(layers[0]);
  return choose;
}

function swatch(color, text) {
  const item = document.createElement("span"), mark = document.createElement("i");
  mark.className = "swatch";
  mark.style.background = color;
  item.append(mark, text);
  return item;
}

function legendOf(layer) {
  if (layer.names)
    return [...data[layer.names].map((role, k) => swatch(CATEGORIES[k % CATEGORIES.length], `${String.fromCharCode(65 + (k % 26))}: ${role}`)),
            ...(layer.minimum < 0 ? [swatch("#808080", "–: no program")] : [])];
  const item = document.createElement("span"), scale = document.createElement("i");
  if (layer.minimum === layer.maximum) return [`${layer.maximum.toLocaleString("en")} ${layer.unit} on every PE`];
  scale.className = "scale";
  scale.style.background = `linear-gradient(to right, ${CIVIDIS.map((c) => `rgb(${c})`).join(", ")})`;
  item.append(layer.minimum.toLocaleString("en"), scale, `${layer.maximum.toLocaleString("en")} ${layer.unit}`);
  const exact = layer.values.exact ? [] : [Object.assign(document.createElement("small"), { textContent: "rounded to 256 levels" })];
  return [item, ...exact];
}

function routeBoxes(grid) {
  for (const { color, carries } of data.colors) {
    const label = document.createElement("label"), box = document.createElement("input");
    box.type = "checkbox";
    box.value = color;
    box.addEventListener("change", () => {
      box.checked ? grid.shown.add(color) : grid.shown.delete(color);
      grid.draw();
    });
    label.append(box, " ", swatch(CATEGORIES[(color + 5) % CATEGORIES.length], `${color}: ${carries}`));
    $("routes").append(label);
  }
}

function peWords(pe, layers, links) {
  const k = pe.y * data.grid.width + pe.x, words = [];
  for (const layer of layers) {
    const value = layer.values.at(k), about = layer.values.exact ? "" : "about ";
    if (layer.names) words.push(value < 0 ? "no program" : `${layer.label} ${data[layer.names][value]}`);
    else words.push(`${layer.label} ${about}${Math.round(value).toLocaleString("en")} ${layer.unit}`
      + (layer.name === "busy" ? ` (${Math.round((100 * value) / data.cycles)} %)` : ""));
  }
  const used = links.map((l) => [l.side, l.values.at(k)]).filter(([, n]) => n > 0).map(([side, n]) => `${side} ${n}`);
  if (used.length) words.push(`wavelets to ${used.join(", ")}`);
  return `PE (${pe.x}, ${pe.y}): ${words.join("; ")}`;
}

function fillEvents(lines) {
  const rows = [], most = 400;
  for (const line of lines)
    for (const event of line.events.slice(0, most)) {
      const row = document.createElement("tr"), what = event.count > 1 ? `${event.name} × ${event.count}` : event.name;
      [`(${line.pe.x}, ${line.pe.y})`, event.start, event.duration, laneOf(event).label, event.kind === "wait" ? `waits: ${what}` : what]
        .forEach((text, k) => { const cell = document.createElement("td"); cell.textContent = text; if (k === 1 || k === 2) cell.className = "number"; row.append(cell); });
      rows.push(row);
    }
  $("events").replaceChildren(...rows);
}

function peList(grid, timelines) {
  const list = $("pe-list"), pes = [...timelines.byPe.values()];
  list.append(...pes.map((pe) => new Option(`(${pe.x}, ${pe.y})`, `${pe.x},${pe.y}`)));
  list.addEventListener("change", () => {
    const [x, y] = list.value.split(",").map(Number);
    grid.look({ x, y });
    grid.choose({ x, y }, false);
  });
}

// The busiest PE of each role that has a time line, three at most.
function busiest(timelines, layers) {
  const [busy, role] = ["busy", "role"].map((name) => layers.find((layer) => layer.name === name).values);
  const at = (pe) => pe.y * data.grid.width + pe.x, roles = new Set();
  const pes = [...timelines.byPe.values()].map(({ x, y }) => ({ x, y })).sort((p, q) => busy.at(at(q)) - busy.at(at(p)));
  return pes.filter((pe) => !roles.has(role.at(at(pe))) && roles.add(role.at(at(pe)))).slice(0, 3);
}

function timeButtons(timelines) {
  const act = { "time-in": () => timelines.zoom(0.6), "time-out": () => timelines.zoom(1 / 0.6), "time-left": () => timelines.move(-0.3),
                "time-right": () => timelines.move(0.3), "time-fit": () => timelines.fit() };
  for (const [id, action] of Object.entries(act)) $(id).addEventListener("click", action);
  $("time-legend").append(...KINDS.map((kind) => swatch(`var(--${kind})`, KIND_LABELS[kind])));
}

function setsOf() {
  if (data.samples.length)
    return new InstanceSets(data.samples, $("set-controls"), $("set-before"), $("set-after"), $("set-status"));
  $("set-status").textContent = "There is no computation task.";
  return null;
}

// High enough for the rows, at the width that there is.
function gridHeight() {
  const { width, height } = data.grid, across = $("grid").clientWidth - 52;
  return Math.round(Math.max(150, Math.min(400, 52 + Math.min(110, across / width) * height)));
}

// The slider of time: a frame of it is a layer of the grid, and is marked in the time lines.
async function waveOf(grid, timelines) {
  if (!data.activity) return null;
  const wave = new Wave(data.activity, await unpack(data.activity.values), (wave) => {
    if (grid.layer !== wave.layer) wave.choose(wave.layer);
    timelines.span = wave.span;
    timelines.draw();
    grid.draw();
    if (grid.focus) grid.onFocus(grid.focus);
  });
  $("wave").hidden = false;
  return wave;
}

// What a line, an event and an instance set have to do with each other.
async function codeOf(grid, timelines, layers, sets) {
  if (!data.listings) {
    if ($("code")) $("code").hidden = true;
    return null;
  }
  const roles = layers.find((layer) => ["role", "program"].includes(layer.name)).values;
  const runs = (pe, listing) => listing.roles.includes(roles.at(pe.y * data.grid.width + pe.x));
  const lineOf = (listing, event) => event.line || (event.kind === "task" ? listing.names[event.name] || 0 : 0);
  const listings = await unpackJson(data.listings);
  const code = new CodeView(listings, $("listing"), $("code-role"), $("code-status"), (listing, line, task) => {
    grid.mark(listing && ((k) => listing.roles.includes(roles.at(k))));
    timelines.lit = listing && ((pe, event) => runs(pe, listing) && lineOf(listing, event) === line);
    timelines.draw();
    if (sets) sets.light(listing ? task : "");
  });
  code.onHold = (listing) => { // a PE with this program is among the time lines
    const mine = [...timelines.byPe.values()].filter((pe) => runs(pe, listing));
    if (mine.length && !grid.chosen.some((pe) => runs(pe, listing))) grid.choose({ x: mine[0].x, y: mine[0].y }, false);
  };
  timelines.onEvent = (pe, event) => {
    const listing = event && listings.find((each) => runs(pe, each) && code.counted(each, lineOf(each, event)));
    if (listing) code.light(listing, lineOf(listing, event));
  };
  return code;
}

function exports(grid, timelines) {
  const name = (data.summary?.name || document.title.split(" ")[0]).replace(/[^\w-]/g, "_");
  const put = (id, what, drawing) => { if ($(id)) $(id).append(exportButtons(`${name}-${what}`, drawing)); };
  put("grid-export", "pes", () => drawnAsSvg(grid, grid.canvas.clientWidth, grid.canvas.clientHeight, grid.drawOn));
  put("time-export", "timelines", () => timelines.asSvg());
  put("tasks-export", "tasks", () => svgText($("task-graph")));
  put("sets-export", "instances", () => ($("set-before").firstChild ? svgText($("set-before").firstChild) : null));
}

async function unpackJson(packed) { return packed && JSON.parse(await unpackText(packed)); }

async function start(shown) {
  leave();
  data = { ...shown, timelines: await unpackJson(shown.timelines), samples: await unpackJson(shown.samples) };
  const ends = new AbortController(), onTheme = (draw) => document.addEventListener("theme", draw, { signal: ends.signal });
  const sets = data.samples ? setsOf() : null;
  const unpacked = (list, key) => Promise.all(list.map(async (item) => ({ ...item, [key]: await unpack(item[key]) })));
  const [layers, routes, links] = await Promise.all([unpacked(data.layers, "values"), unpacked(data.routes, "on"), unpacked(data.links, "values")]);
  $("grid").style.height = `${gridHeight()}px`;
  const timelines = new Timelines($("timelines"), data, $("time-status"));
  let wave = null;
  const grid = new GridView($("grid"), data, layers, routes,
    (chosen) => {
      fillEvents(timelines.show(chosen));
      if (chosen.length === 1) $("pe-list").value = `${chosen[0].x},${chosen[0].y}`;
    },
    (pe) => { $("grid-status").textContent = (wave && grid.layer === wave.layer ? `${wave.wordsAt(pe)}. ` : "") + peWords(pe, layers, links); });
  wave = await waveOf(grid, timelines);
  leave = () => { ends.abort(); if (wave) wave.stop(); };
  if (wave) onTheme(() => { wave.paint(); grid.draw(); });
  const choose = layerButtons(grid, wave ? [...layers, wave.layer] : layers, wave ? { activity: () => wave.legend() } : {});
  if (wave) wave.choose = choose;
  routeBoxes(grid);
  timeButtons(timelines);
  $("grid-in").addEventListener("click", () => grid.zoom(1.4));
  $("grid-out").addEventListener("click", () => grid.zoom(1 / 1.4));
  $("grid-fit").addEventListener("click", () => grid.fit());
  onTheme(() => { grid.draw(); timelines.draw(); });
  peList(grid, timelines);
  for (const pe of busiest(timelines, layers)) grid.choose(pe, true);
  await codeOf(grid, timelines, layers, sets);
  exports(grid, timelines);
  document.body.dataset.ready = "yes";
}
