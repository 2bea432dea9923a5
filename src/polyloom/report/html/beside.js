// Two rectangles with the same colours for the same values.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

async function gridOf(run, k) {
  const layers = await Promise.all(run.layers.map(async (layer) => ({ ...layer, values: await unpack(layer.values) })));
  const canvas = $(`grid-${k}`);
  canvas.style.height = "340px";
  const grid = new GridView(canvas, run, layers, [], () => {}, (pe) => {
    const at = pe.y * run.grid.width + pe.x, words = layers.filter((layer) => !layer.names)
      .map((layer) => `${layer.label} ${Math.round(layer.values.at(at)).toLocaleString("en")} ${layer.unit}`);
    $(`status-${k}`).textContent = `PE (${pe.x}, ${pe.y}): ${words.join("; ")}`;
  });
  const svg = () => drawnAsSvg(grid, canvas.clientWidth, canvas.clientHeight, grid.drawOn);
  $(`status-${k}`).before(exportButtons(`pes-${k}`, svg));
  return grid;
}

// Shows a layer of both runs, from the smallest value of both to the largest.
function show(grids, name) {
  const both = grids.map((grid) => grid.layers.find((layer) => layer.name === name));
  const minimum = Math.min(...both.map((layer) => layer.minimum)), maximum = Math.max(...both.map((layer) => layer.maximum));
  grids.forEach((grid, k) => grid.show({ ...both[k], minimum, maximum }));
  const scale = document.createElement("i");
  scale.className = "scale";
  scale.style.background = `linear-gradient(to right, ${CIVIDIS.map((c) => `rgb(${c})`).join(", ")})`;
  $("grid-legend").replaceChildren(minimum.toLocaleString("en"), scale, `${maximum.toLocaleString("en")} ${both[0].unit}`);
  for (const button of $("layers").children) button.setAttribute("aria-pressed", String(button.dataset.layer === name));
}

async function start() {
  document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  if (data.runs.length) {
    const grids = await Promise.all(data.runs.map(gridOf));
    for (const layer of grids[0].layers.filter((each) => !each.names)) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: layer.label });
      button.dataset.layer = layer.name;
      button.addEventListener("click", () => show(grids, layer.name));
      $("layers").append(button);
    }
    show(grids, "busy");
  }
  document.body.dataset.ready = "yes";
}

start();
