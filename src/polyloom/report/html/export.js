// Drawings as files: SVG by a context that writes down what is drawn, PNG from a canvas.

const SVG = "http://www.w3.org/2000/svg";

function paint(name) { // a colour of the style sheet
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The part of CanvasRenderingContext2D that the drawings here use, as SVG.
class SvgContext {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], path: "", stack: [], clips: 0, open: 0, dash: [] });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, lineCap: "butt",
                          font: "11px sans-serif", textAlign: "left", textBaseline: "alphabetic" });
  }

  text() {
    const ground = `<rect width="${this.width}" height="${this.height}" fill="${paint("--surface")}"/>`;
    return `<svg xmlns="${SVG}" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">`
      + `${ground}${this.parts.join("")}${"</g>".repeat(this.open)}</svg>`;
  }

  add(element) { this.parts.push(element); }
  get filled() { return `fill="${this.fillStyle}"${this.alpha}`; }
  get stroked() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    return `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}${this.alpha}`;
  }
  get alpha() { return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""; }

  save() { this.stack.push([this.open, { font: this.font, globalAlpha: this.globalAlpha }]); }
  restore() {
    const [open, state] = this.stack.pop();
    while (this.open > open) { this.add("</g>"); this.open--; }
    Object.assign(this, state);
  }
  clip() {
    const id = `clip${this.clips++}`;
    this.add(`<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`);
    this.open++;
  }

  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x} ${y}`; }
  lineTo(x, y) { this.path += `L${x} ${y}`; }
  rect(x, y, w, h) { this.path += `M${x} ${y}h${w}v${h}h${-w}z`; }
  arc(x, y, r) { this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; }
  setLineDash(dash) { this.dash = dash; }
  stroke() { this.add(`<path d="${this.path}" ${this.stroked}/>`); }
  fill() { this.add(`<path d="${this.path}" ${this.filled}/>`); }
  fillRect(x, y, w, h) { this.add(`<rect x="${x}" y="${y}" width="${w}" height="${h}" ${this.filled}/>`); }
  strokeRect(x, y, w, h) { this.add(`<rect x="${x}" y="${y}" width="${w}" height="${h}" ${this.stroked}/>`); }
  clearRect(x, y, w, h) { this.add(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${paint("--surface")}"/>`); }
  drawImage(canvas, x, y, w, h) {
    this.add(`<image href="${canvas.toDataURL()}" x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" style="image-rendering: pixelated"/>`);
  }
  fillText(text, x, y) {
    const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
    const line = { middle: "central", bottom: "text-after-edge", top: "text-before-edge", alphabetic: "alphabetic" }[this.textBaseline];
    const [size, family] = this.font.split(/px /), escaped = String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;");
    this.add(`<text x="${x}" y="${y}" font-size="${size}" font-family="${family.replace(/"/g, "'")}" text-anchor="${anchor}" dominant-baseline="${line}" ${this.filled}>${escaped}</text>`);
  }
}

const DRAWN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "font-weight",
               "text-anchor", "dominant-baseline", "paint-order"];

// A drawing of the page as a text that needs no style sheet.
function svgText(drawing) {
  const copy = drawing.cloneNode(true), { width, height } = drawing.getBoundingClientRect();
  const from = [drawing, ...drawing.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of DRAWN) to[k].style.setProperty(name, style.getPropertyValue(name));
  });
  for (const [name, value] of [["xmlns", SVG], ["width", width], ["height", height]]) copy.setAttribute(name, value);
  copy.style.background = paint("--surface");
  return new XMLSerializer().serializeToString(copy);
}

function save(name, url) {
  const link = document.createElement("a");
  link.download = name;
  link.href = url;
  link.click();
}

function saveText(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  save(name, url);
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// A text of SVG as a data URL of a PNG, twice as fine as on the screen.
async function pngOf(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.width;
  canvas.height = 2 * image.height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

// Two buttons that write what `drawing` returns, a text of SVG or null, to files.
function exportButtons(name, drawing) {
  const group = document.createElement("span");
  group.className = "export";
  for (const kind of ["SVG", "PNG"]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: kind, title: `save this drawing as ${kind}` });
    button.dataset.export = `${name}.${kind.toLowerCase()}`;
    button.addEventListener("click", async () => {
      const text = drawing();
      if (text === null) return;
      if (kind === "SVG") saveText(button.dataset.export, text);
      else save(button.dataset.export, await pngOf(text));
    });
    group.append(button);
  }
  return group;
}

function drawnAsSvg(view, width, height, draw) {
  const context = new SvgContext(width, height);
  draw.call(view, context, width, height);
  return context.text();
}
