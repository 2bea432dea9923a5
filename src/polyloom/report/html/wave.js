// What PEs do as time goes on: a frame of the run on the grid, chosen by a slider or played.

const DOING = [["task", "computes"], ["wait", "waits in a task"], ["microthread", "computes beside the main thread"],
               ["extra", "sends to neighbours"]]; // in the order of the data's kinds
const FRAMES_A_SECOND = 16;

class Wave {
  constructor(activity, values, onFrame) {
    Object.assign(this, { activity, values, onFrame, frame: 0, timer: null });
    this.canvas = document.createElement("canvas"); // a pixel for each cell
    this.canvas.width = activity.columns;
    this.canvas.height = activity.rows;
    this.layer = { name: "activity", label: "activity at a time", canvas: this.canvas, side: activity.side };
    this.slider = $("wave-time");
    this.slider.max = activity.frames - 1;
    this.slider.addEventListener("input", () => { this.stop(); this.go(Number(this.slider.value)); });
    $("wave-play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    this.go(0, false);
  }

  get span() { return [this.frame * this.activity.length, (this.frame + 1) * this.activity.length]; }

  go(frame, shown = true) {
    this.frame = frame;
    this.slider.value = String(frame);
    const [from, to] = this.span, words = `cycles ${from.toLocaleString("en")} to ${to.toLocaleString("en")}`;
    $("wave-span").textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.paint();
    if (shown) this.onFrame(this);
  }

  play() {
    if (this.frame === this.activity.frames - 1) this.go(0);
    $("wave-play").textContent = "pause";
    this.timer = setInterval(() => {
      if (this.frame === this.activity.frames - 1) this.stop();
      else this.go(this.frame + 1);
    }, 1000 / FRAMES_A_SECOND);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    $("wave-play").textContent = "play";
  }

  // Shares of 0 to 1 of a cell, one for each kind.
  shares(cell) {
    const cells = this.activity.columns * this.activity.rows, at = this.frame * DOING.length * cells + cell;
    return DOING.map((_, kind) => this.values.at(at + kind * cells) / 255);
  }

  paint() {
    const { columns, rows } = this.activity, context = this.canvas.getContext("2d"), image = context.createImageData(columns, rows);
    const ground = rgbOf(paint("--surface")), inks = DOING.map(([kind]) => rgbOf(paint(`--${kind}`)));
    for (let cell = 0; cell < columns * rows; cell++) {
      const shares = this.shares(cell), sum = Math.max(1, shares[0] + shares[1] + shares[2] + shares[3]);
      for (let c = 0; c < 3; c++) {
        let value = ground[c];
        for (let kind = 0; kind < inks.length; kind++) value += (shares[kind] / sum) * (inks[kind][c] - ground[c]);
        image.data[4 * cell + c] = value;
      }
      image.data[4 * cell + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  legend() { return DOING.map(([kind, words]) => swatch(`var(--${kind})`, words)); }

  wordsAt(pe) {
    const { side, columns } = this.activity, shares = this.shares(Math.floor(pe.y / side) * columns + Math.floor(pe.x / side));
    const doing = DOING.map(([, words], kind) => [words, shares[kind]]).filter(([, share]) => share > 0);
    const text = doing.map(([words, share]) => `${words} ${Math.round(100 * share)} %`).join(", ") || "idle";
    return `${$("wave-span").textContent}: ${text}${side > 1 ? ` (of ${side} × ${side} PEs)` : ""}`;
  }
}
