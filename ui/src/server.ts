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

export class Server {
  constructor(private readonly token: string) {}

  async fetchFleet(): Promise<FleetDocument> {
    return readDocument(await this.request("./api/fleet"));
  }
  async explain(kind: string, name: string): Promise<Explanation> {
    return (await this.request(`./api/explain?${new URLSearchParams({ kind, name })}`)) as Explanation;
  }
  async fetchNodePools(): Promise<Record<string, string>> {
    const pools = await this.request("./api/node-pools");
    return ((pools as { nodePools?: Record<string, string> }).nodePools ?? pools) as Record<string, string>;
  }
  async whatIf(nodePools: string, prices: Record<string, number>): Promise<WhatIfAnswer> {
    return (await this.request("./api/what-if", { nodePools, prices })) as WhatIfAnswer;
  }

  /** Call *update* with each new document until the page closes; connects again after errors. */
  async listen(update: (document: FleetDocument) => void, report: (isConnected: boolean) => void): Promise<void> {
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
  private async receive(data: string, update: (document: FleetDocument) => void): Promise<void> {
    const value = JSON.parse(data) as object;
    update("format" in value ? readDocument(value) : await this.fetchFleet());
  }

  private headers(): Record<string, string> {
    return { "X-Joiner-Token": this.token };
  }
  private async request(url: string, body?: unknown): Promise<unknown> {
    const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(url, { ...options, headers: { ...this.headers(), "Content-Type": "application/json" } });
    const value: unknown = await response.json().catch(() => null);
    if (!response.ok) {
      const message = (value as { error?: string } | null)?.error;
      throw new Error(message ?? `The server answered ${response.status}. To fix: look at the terminal of joiner ui.`);
    }
    return value;
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
