// The page shows one thing.

theme();
start(JSON.parse($("data").textContent));
