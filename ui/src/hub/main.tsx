/** Ask the server of `joiner ui --hub` for the clusters, and show them. */
import { render } from "preact";
import type { HubDocument } from "./document";
import { HubPage } from "./hub_page";
import "../style/hub.css";

const token = new URLSearchParams(location.search).get("token") ?? "";

async function fetchHub(): Promise<HubDocument> {
  const response = await fetch("./api/hub", { headers: { "X-Joiner-Token": token } });
  const value: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const message = (value as { error?: string } | null)?.error;
    throw new Error(message ?? `The server answered ${response.status}. To fix: look at the terminal of joiner ui.`);
  }
  return value as HubDocument;
}

const root = document.getElementById("app");
if (root) {
  fetchHub()
    .then((first) => render(<HubPage first={first} fetchHub={fetchHub} />, root))
    .catch((error: unknown) => {
      render(
        <div class="failure" role="alert">
          <h1>Joiner</h1>
          <p>{error instanceof Error ? error.message : String(error)}</p>
        </div>,
        root,
      );
    });
}
