/** Build the scripts and styles in cli/ui/assets: `node ui/build.mjs`; with --tests, the unit tests in ui/.tests. */
import { readdirSync, statSync } from "node:fs";
import { build } from "esbuild";

const options = { bundle: true, legalComments: "none", jsx: "automatic", jsxImportSource: "preact", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  const tests = readdirSync("ui/test").filter((name) => name.endsWith(".test.ts"));
  await build({
    ...options,
    entryPoints: tests.map((name) => `ui/test/${name}`),
    outdir: "ui/.tests",
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    loader: { ".css": "empty" },
  });
} else {
  await build({
    ...options,
    entryPoints: { fleet: "ui/src/main.tsx", hub: "ui/src/hub/main.tsx" },
    outdir: "cli/ui/assets",
    minify: true,
    format: "iife",
    target: ["chrome110", "firefox115", "safari16.4"],
  });
  const names = ["fleet.js", "fleet.css", "hub.js", "hub.css"];
  const sizes = names.map((name) => `${name} ${Math.round(statSync(`cli/ui/assets/${name}`).size / 1024)} KiB`);
  console.log(`cli/ui/assets: ${sizes.join(", ")}`);
}
