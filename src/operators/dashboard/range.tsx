import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Form } from "./dialog.tsx";
import { goTo, hrefTo, type Route, useRoute } from "./route.ts";
import { localTime } from "./words.ts";

/*
 * The one range of time that all pages share. It is a part of the address, and links carry it on.
 */

const HOUR_MS = 3_600_000;
const SPANS = [
  { range: "1h", label: "1 hour", ms: HOUR_MS },
  { range: "24h", label: "24 hours", ms: 24 * HOUR_MS },
  { range: "7d", label: "7 days", ms: 7 * 24 * HOUR_MS },
  { range: "31d", label: "31 days", ms: 31 * 24 * HOUR_MS },
] as const;
type Span = (typeof SPANS)[number]["range"];

/** The choice in the address; `own`: there is none, so the page has its own range. */
export type Chosen = Span | "custom" | "own";

export function chosenIn(query: URLSearchParams): Chosen {
  const found = SPANS.find(({ range }) => range === query.get("range"));
  if (found !== undefined) return found.range;
  return momentIn(query, "from") === null && momentIn(query, "to") === null ? "own" : "custom";
}

/** Names the range in keys of what was loaded for it. */
export function keyOfRange(query: URLSearchParams): string {
  return ["range", "from", "to"].map((name) => query.get(name) ?? "").join(" ");
}

/** The range as the API takes it, with the members that bound it. `own`: the span of a page without a choice; null: any time. */
export function timesIn(query: URLSearchParams, own: Span | null): { readonly from?: string; readonly to?: string } {
  const chosen = chosenIn(query);
  if (chosen === "custom") {
    const [from, to] = [momentIn(query, "from"), momentIn(query, "to")];
    return { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) };
  }
  const span = SPANS.find(({ range }) => range === (chosen === "own" ? own : chosen));
  return span === undefined ? {} : { from: new Date(Date.now() - span.ms).toISOString() };
}

function momentIn(query: URLSearchParams, name: "from" | "to"): string | null {
  const ms = Date.parse(query.get(name) ?? "");
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** "the last 24 hours", for headings. */
export function rangeWords(query: URLSearchParams, own: Span | null): string {
  const chosen = chosenIn(query);
  const span = SPANS.find(({ range }) => range === (chosen === "own" ? own : chosen));
  if (span !== undefined) return span.range === "1h" ? "the last hour" : `the last ${span.label}`;
  const { from, to } = timesIn(query, own);
  if (from === undefined && to === undefined) return "any time";
  return [from === undefined ? "" : `from ${localTime(from)}`, to === undefined ? "" : `to ${localTime(to)}`]
    .filter((part) => part !== "")
    .join(" ");
}

/** Chooses the range. `own` is marked while there is no choice; null: any time. */
export function RangeBar({ own }: { readonly own: Span | null }): JSX.Element {
  const route = useRoute();
  const [isOpen, setOpen] = useState(false);
  const chosen = chosenIn(route.query);
  const isCurrent = (range: Span | null) => (chosen === "own" ? range === own : chosen === range);
  return (
    <div class="range">
      <nav aria-label="Time range">
        {SPANS.map(({ range, label }) => (
          <a key={range} href={hrefIn(route, { range })} aria-current={isCurrent(range) ? "true" : undefined}>
            {label}
          </a>
        ))}
        {own === null ? (
          <a href={hrefIn(route, {})} aria-current={chosen === "own" ? "true" : undefined}>
            Any time
          </a>
        ) : null}
        <button
          type="button"
          aria-expanded={isOpen}
          aria-current={chosen === "custom" ? "true" : undefined}
          onClick={() => setOpen(!isOpen)}
        >
          {chosen === "custom" ? rangeWords(route.query, own) : "From … to …"}
        </button>
      </nav>
      {isOpen ? <Custom route={route} onDone={() => setOpen(false)} /> : null}
    </div>
  );
}

interface Given {
  readonly range?: string;
  readonly from?: string;
  readonly to?: string;
}

/** The same page with another range. Members that are not given are taken out. */
function hrefIn({ parts, query }: Route, given: Given): string {
  return hrefTo(parts, { ...Object.fromEntries(query), range: "", from: "", to: "", ...given });
}

function Custom({ route, onDone }: { readonly route: Route; onDone(): void }): JSX.Element {
  const value = (name: "from" | "to") => localValue(momentIn(route.query, name));
  return (
    <div class="search">
      <Form
        label="Show"
        fields={[
          { kind: "datetime-local", name: "from", label: "From", value: value("from") },
          { kind: "datetime-local", name: "to", label: "To", value: value("to") },
        ]}
        submit={async (filled) => {
          const moment = (name: string) => {
            const text = filled.text(name);
            return text === "" ? "" : new Date(text).toISOString();
          };
          const [from, to] = [moment("from"), moment("to")];
          if (from !== "" && to !== "" && to < from) throw new Error("The end must not be before the beginning.");
          const { parts, query } = route;
          goTo(parts, { ...Object.fromEntries(query), range: "", from, to });
          onDone();
        }}
      />
    </div>
  );
}

/** As the input has it, in the viewer's zone. */
function localValue(iso: string | null): string {
  if (iso === null) return "";
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
