// Light or dark, as the reader has it.
document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
document.body.dataset.ready = "yes";
