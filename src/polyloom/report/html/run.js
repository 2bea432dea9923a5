// Light or dark, as the reader has it; drawings can be saved.
document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.querySelectorAll(".panel > svg").forEach((drawing, k) => {
  const name = drawing.closest("section").id, words = drawing.getAttribute("aria-label") || `${k}`;
  drawing.after(exportButtons(`${name}-${words}`.replace(/[^\w-]+/g, "_"), () => svgText(drawing)));
});
document.body.dataset.ready = "yes";
