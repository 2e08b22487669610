/** The theme of the page, and the settings that the browser keeps. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Theme } from "../map/palette";

export function readStored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // Pages on disk may have no storage: the setting then holds until the page closes.
  }
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [chosen, setChosen] = useState(readStored("joiner-theme"));
  const [isDark, setIsDark] = useState(query.matches);
  const [isPrinting, setIsPrinting] = useState(false);
  useEffect(() => {
    const update = () => setIsDark(query.matches);
    const print = matchMedia("print");
    const updatePrint = () => setIsPrinting(print.matches);
    query.addEventListener("change", update);
    print.addEventListener("change", updatePrint);
    return () => {
      query.removeEventListener("change", update);
      print.removeEventListener("change", updatePrint);
    };
  }, [query]);
  const theme: Theme = isPrinting ? "light" : chosen === "light" || chosen === "dark" ? chosen : isDark ? "dark" : "light";
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [
    theme,
    (next) => {
      store("joiner-theme", next);
      setChosen(next);
    },
  ];
}
