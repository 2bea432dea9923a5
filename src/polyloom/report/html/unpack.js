// Arrays of the page's data: base64, deflated. The other side is packing.py.

const RAW = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, bits: Uint8Array };

async function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream);
}

async function unpackText(packed) { return (await inflated(packed)).text(); }

async function unpack(packed) {
  const raw = new RAW[packed.type](await (await inflated(packed)).arrayBuffer());
  if (packed.type === "bits") return { test: (k) => ((raw[k >> 3] >> (k & 7)) & 1) === 1 };
  return { at: (k) => packed.offset + packed.scale * raw[k], exact: packed.exact };
}
