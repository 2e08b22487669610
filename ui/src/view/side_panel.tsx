/** The panel beside the map: decisions, the reasons for the selected object, and what-if. */
import { useEffect, useRef, useState } from "preact/hooks";
import { usePage } from "./context";
import { DecisionList } from "./decision_list";
import { WhatIf } from "./what_if";
import { Why } from "./why";

type Tab = "decisions" | "why" | "whatif";
const TITLES: Record<Tab, string> = { decisions: "Decisions", why: "Why", whatif: "What if" };

export function SidePanel() {
  const { selection, server } = usePage();
  const [tab, setTab] = useState<Tab>(selection ? "why" : "decisions");
  const tabs: Tab[] = server ? ["decisions", "why", "whatif"] : ["decisions", "why"];
  useEffect(() => {
    if (selection) setTab("why");
    else setTab((before) => (before === "why" ? "decisions" : before));
  }, [selection]);
  // What-if keeps its edits while other tabs are shown: it stays in the page once it was opened.
  const wasWhatIfOpened = useRef(false);
  wasWhatIfOpened.current ||= tab === "whatif";
  const content = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (tab !== "decisions" && content.current) content.current.scrollTop = 0;
  }, [tab, selection?.kind, selection?.name]);
  const press = (event: KeyboardEvent) => {
    const move = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!move) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + move + tabs.length) % tabs.length];
    setTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <aside class="side" aria-label="Details">
      <div class="tabs" role="tablist" aria-label="Details" onKeyDown={press}>
        {tabs.map((name) => (
          <button
            key={name}
            id={`tab-${name}`}
            type="button"
            role="tab"
            aria-selected={tab === name}
            aria-controls="side-content"
            tabIndex={tab === name ? 0 : -1}
            onClick={() => setTab(name)}
          >
            {TITLES[name]}
          </button>
        ))}
      </div>
      <div class="content" ref={content} id="side-content" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "decisions" && <DecisionList />}
        {tab === "why" && <Why />}
        {wasWhatIfOpened.current && (
          <div hidden={tab !== "whatif"}>
            <WhatIf />
          </div>
        )}
      </div>
    </aside>
  );
}
