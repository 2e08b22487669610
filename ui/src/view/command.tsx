import { useState } from "preact/hooks";

/** A command to copy. */
export function Command({ text }: { text: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(text).then(() => setIsCopied(true));
  };
  return (
    <div class="command">
      <code>{text}</code>
      <button type="button" onClick={copy}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
