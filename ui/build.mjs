/** Build cli/ui/assets/fleet.js and fleet.css: `node ui/build.mjs`; with --tests, the unit tests in ui/.tests. */
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
    entryPoints: { fleet: "ui/src/main.tsx" },
    outdir: "cli/ui/assets",
    minify: true,
    format: "iife",
    target: ["chrome110", "firefox115", "safari16.4"],
  });
  const bytes = ["fleet.js", "fleet.css"].map((name) => statSync(`cli/ui/assets/${name}`).size);
  console.log(`cli/ui/assets: fleet.js ${Math.round(bytes[0] / 1024)} KiB, fleet.css ${Math.round(bytes[1] / 1024)} KiB`);
}
