/** Change NodePools or prices, and compare the plan with today's. The server computes it, and changes nothing. */
import { useEffect, useState } from "preact/hooks";
import type { WhatIfAnswer, WhatIfPlan } from "../server";
import { countOf, formatUsdPerHour } from "../text/units";
import { usePage } from "./context";
import { Lines, LongList, Section } from "./parts";

/** Read lines like "m5.large 0.08" as prices in USD per hour. Throws an Error that names the line. */
export function parsePrices(text: string): Record<string, number> {
  const prices: Record<string, number> = {};
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const match = /^\s*([^\s:=]+)[\s:=]+\$?([0-9.]+)\s*$/.exec(line);
    if (!match) throw new Error(`"${line.trim()}" is not a price. To fix: write an instance type and USD per hour, as in "m5.large 0.08".`);
    prices[match[1]] = Number(match[2]);
  }
  return prices;
}

export function WhatIf() {
  const { server } = usePage();
  const [texts, setTexts] = useState<Record<string, string> | null>(null);
  const [prices, setPrices] = useState("");
  const [answer, setAnswer] = useState<WhatIfAnswer | null>(null);
  const [error, setError] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const load = () => {
    setAnswer(null);
    server?.fetchNodePools().then(setTexts, (failure: unknown) => setError(String(failure)));
  };
  useEffect(load, [server]);
  if (!server) return null;
  const compute = async () => {
    setIsBusy(true);
    setError("");
    setAnswer(null);
    try {
      setAnswer(await server.whatIf(texts ?? {}, parsePrices(prices)));
    } catch (failure) {
      setError(failure instanceof Error ? failure.message : String(failure));
    }
    setIsBusy(false);
  };
  return (
    <div class="what-if">
      <p>Change a NodePool or a price and compare the plan with today's. Nothing in the cluster changes.</p>
      {texts === null && !error && <p>Reading NodePools…</p>}
      {Object.entries(texts ?? {}).map(([name, text]) => (
        <label key={name} class="editor">
          <span>NodePool {name}</span>
          <textarea rows={12} spellcheck={false} value={text} onInput={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })} />
        </label>
      ))}
      <label class="editor">
        <span>Prices in USD per hour, one per line: of an instance type, or of an instance type and capacity type</span>
        <textarea rows={2} spellcheck={false} placeholder={"m5.large 0.08\nm5.large/spot 0.03"} value={prices} onInput={(event) => setPrices(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <button type="button" class="primary" disabled={isBusy || texts === null} onClick={() => void compute()}>
          {isBusy ? "Computing…" : "Compare"}
        </button>
        <button type="button" onClick={load}>
          Reset
        </button>
      </div>
      <div aria-live="polite">
        {error && <p class="error">{error}</p>}
        {answer && <Answer answer={answer} />}
      </div>
    </div>
  );
}

function Answer({ answer }: { answer: WhatIfAnswer }) {
  const { planBefore, planAfter, errors } = answer;
  return (
    <>
      {errors.length > 0 && <Section title="Errors"><Lines lines={errors} /></Section>}
      {planBefore && planAfter && (
        <>
          <p class="difference">
            {formatUsdPerHour(planBefore.usdPerHour)} → <b>{formatUsdPerHour(planAfter.usdPerHour)}</b>
          </p>
          <Plan title="Today" plan={planBefore} />
          <Plan title="With the changes" plan={planAfter} />
        </>
      )}
      {answer.consolidation != null && (
        <Section title="Consolidation">
          <Lines lines={consolidationLines(answer.consolidation)} />
        </Section>
      )}
    </>
  );
}

/** Lines of the consolidation part, whatever its shape: lines as they are, other fields as "name: value". */
export function consolidationLines(value: unknown): string[] {
  if (Array.isArray(value)) return value.map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
  if (typeof value !== "object" || value === null) return [String(value)];
  const lines = (value as { lines?: string[] }).lines;
  return lines ?? Object.entries(value).map(([name, field]) => `${name}: ${typeof field === "object" ? JSON.stringify(field) : String(field)}`);
}

function Plan({ title, plan }: { title: string; plan: WhatIfPlan }) {
  return (
    <Section title={`${title}: ${countOf(plan.nodes.length, "new node")}, ${formatUsdPerHour(plan.usdPerHour)}`}>
      <LongList
        noun="nodes"
        rows={plan.nodes.map((node) => (
          <>
            {node.instanceType} {node.capacityType} {node.zone} <small>{countOf(node.pods, "pod")}, {formatUsdPerHour(node.price)}</small>
          </>
        ))}
      />
      {plan.unschedulable.length > 0 && <Lines lines={plan.unschedulable.map((pod) => `${pod.name}: ${pod.reason}`)} />}
    </Section>
  );
}
