/** The server of `joiner ui`. Pages on disk have none. */
import { FleetDocument, readDocument } from "./document/format";

export interface Explanation {
  lines: string[];
  links: { kind: string; name: string }[];
}
export interface WhatIfPlan {
  usdPerHour: number;
  nodes: { instanceType: string; capacityType: string; zone: string; price: number | null; pods: number }[];
  unschedulable: { name: string; reason: string }[];
}
export interface WhatIfAnswer {
  planBefore: WhatIfPlan | null;
  planAfter: WhatIfPlan | null;
  consolidation: unknown;
  errors: string[];
}

/** An event of a live source. If the version is new, the document changed in more than its end. */
interface FleetEvent {
  version: number;
  end: number;
}
/** What a live source has: a new document, or the same one at a later time. */
export type FleetUpdate = { document: FleetDocument } | { end: number };

export class Server {
  /** The version of the document that was fetched last. */
  private version = "";
  constructor(private readonly token: string) {}

  async fetchFleet(): Promise<FleetDocument> {
    const { value, headers } = await this.request("./api/fleet");
    this.version = headers.get("X-Joiner-Version") ?? "";
    return readDocument(value);
  }
  async explain(kind: string, name: string): Promise<Explanation> {
    return (await this.request(`./api/explain?${new URLSearchParams({ kind, name })}`)).value as Explanation;
  }
  async fetchNodePools(): Promise<Record<string, string>> {
    return ((await this.request("./api/node-pools")).value as { nodePools: Record<string, string> }).nodePools;
  }
  async whatIf(nodePools: Record<string, string>, prices: Record<string, number>): Promise<WhatIfAnswer> {
    return (await this.request("./api/what-if", { nodePools, prices })).value as WhatIfAnswer;
  }

  /** Call *update* with each new document or end until the page closes; connects again after errors. */
  async listen(update: (update: FleetUpdate) => void, report: (isConnected: boolean) => void): Promise<void> {
    for (;;) {
      try {
        const response = await fetch("./api/events", { headers: this.headers() });
        if (!response.ok || !response.body) throw new Error(String(response.status));
        report(true);
        for await (const data of readEvents(response.body)) await this.receive(data, update);
      } catch {
        report(false);
      }
      await new Promise((resolve) => setTimeout(resolve, 3000));
    }
  }
  private async receive(data: string, update: (update: FleetUpdate) => void): Promise<void> {
    const { version, end } = JSON.parse(data) as FleetEvent;
    if (String(version) !== this.version) update({ document: await this.fetchFleet() });
    update({ end });
  }

  private headers(): Record<string, string> {
    return { "X-Joiner-Token": this.token };
  }
  private async request(url: string, body?: unknown): Promise<{ value: unknown; headers: Headers }> {
    const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(url, { ...options, headers: { ...this.headers(), "Content-Type": "application/json" } });
    const value: unknown = await response.json().catch(() => null);
    if (!response.ok) {
      const message = (value as { error?: string } | null)?.error;
      throw new Error(message ?? `The server answered ${response.status}. To fix: look at the terminal of joiner ui.`);
    }
    return { value, headers: response.headers };
  }
}

/** Yield the data of each server-sent event named "fleet". */
async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true }).replaceAll("\r\n", "\n");
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const { name, data } = parseEvent(event);
      if (name === "fleet" && data) yield data;
    }
  }
}
export function parseEvent(event: string): { name: string; data: string } {
  const lines = event.split("\n");
  const field = (name: string) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, ""));
  return { name: field("event")[0] ?? "message", data: field("data").join("\n") };
}
