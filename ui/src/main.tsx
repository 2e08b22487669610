/** Read the document of the page, or ask the server for it, and show it. */
import { render } from "preact";
import { readDocument } from "./document/format";
import { Server } from "./server";
import { App } from "./view/app";
import "./style/main.css";

async function start(root: HTMLElement): Promise<void> {
  const text = document.getElementById("fleet-document")?.textContent ?? "";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("The data of this page is not JSON. To fix: create the page again; its file may be cut off.");
  }
  if ((value as { server?: boolean }).server === true) {
    const server = new Server(new URLSearchParams(location.search).get("token") ?? "");
    render(<App first={await server.fetchFleet()} server={server} />, root);
  } else {
    render(<App first={readDocument(value)} server={null} />, root);
  }
}

const root = document.getElementById("app");
if (root) {
  start(root).catch((error: unknown) => {
    render(
      <div class="failure" role="alert">
        <h1>Joiner</h1>
        <p>{error instanceof Error ? error.message : String(error)}</p>
      </div>,
      root,
    );
  });
}
