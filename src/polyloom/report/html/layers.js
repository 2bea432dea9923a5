// The pages of layers, one at a time: a layer's sections are put below the table of all, and drawn.

const pages = JSON.parse($("data").textContent).pages; // by the layer's number, null for those that were refused
let wanted = null;

async function openLayer(number) {
  wanted = number;
  delete document.body.dataset.layer;
  const [body, shown] = await Promise.all([unpackText(pages[number].body), unpackJson(pages[number].data)]);
  if (wanted !== number) return;
  leave();
  $("layer").innerHTML = body;
  $("layer").setAttribute("aria-label", `layer ${pages[number].name}`);
  $("layer-title").textContent = pages[number].name;
  $("layer-list").value = String(number);
  for (const row of document.querySelectorAll("#layers-table tr"))
    row.classList.toggle("lit", row.dataset.layer === String(number));
  await start(shown);
  if (wanted === number) document.body.dataset.layer = String(number);
}

function ofAddress() {
  const number = Number((/^#layer-(\d+)$/.exec(location.hash) || [])[1] ?? NaN);
  return pages[number] ? number : null;
}

async function begin() {
  theme();
  const first = Number($("layer-list").dataset.first);
  $("layer-list").append(...pages.map((page, k) => page && new Option(page.name, k)).filter(Boolean));
  $("layer-list").addEventListener("change", () => { location.hash = `#layer-${$("layer-list").value}`; });
  window.addEventListener("hashchange", async () => {
    if (ofAddress() === null) return;
    if (ofAddress() !== wanted) await openLayer(ofAddress());
    $("layer-head").scrollIntoView();
  });
  if (pages.some(Boolean)) await openLayer(ofAddress() ?? first);
  document.body.dataset.ready = "yes";
}

begin();
