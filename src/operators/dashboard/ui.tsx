import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "./api.ts";
import { type Loaded, useMedia, useNow } from "./load.ts";
import { ago, channelName, localTime, utcTime } from "./words.ts";

/*
 * Components that all pages share.
 */

export function Page({
  title,
  intro,
  actions,
  children,
}: {
  readonly title: string;
  readonly intro?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  useEffect(() => {
    document.title = `${title} · Waybill`;
  }, [title]);
  return (
    <>
      <div class="page-head">
        <h1>{title}</h1>
        {actions === undefined ? null : <div class="actions">{actions}</div>}
      </div>
      {intro === undefined ? null : <p class="intro">{intro}</p>}
      {children}
    </>
  );
}

export function Card({
  title,
  actions,
  children,
}: {
  readonly title: string;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <section class="card" aria-label={title}>
      <div class="card-head">
        <h2>{title}</h2>
        {actions === undefined ? null : <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

/** An error in the API's words, with its request id for the log. */
export function ProblemBox({
  problem,
  retry,
}: {
  readonly problem: Problem | null;
  readonly retry?: () => void;
}): JSX.Element | null {
  if (problem === null) return null;
  return (
    <div class="problem" role="alert">
      <p>{problem.text}</p>
      {problem.requestId === null ? null : (
        <p class="small">
          Request <code>{problem.requestId}</code>
        </p>
      )}
      {retry === undefined ? null : (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Waiting({ what = "Loading" }: { readonly what?: string }): JSX.Element {
  return (
    <p class="waiting" role="status">
      {what}…
    </p>
  );
}

/** Loaded data; until then, a notice that it is loading, or the error. */
export function Show<T>({
  loaded: { data, problem, reload },
  children,
}: {
  readonly loaded: Pick<Loaded<T>, "data" | "problem" | "reload">;
  children(data: T): ComponentChildren;
}): JSX.Element {
  return (
    <>
      <ProblemBox problem={problem} retry={reload} />
      {data === null ? problem === null && <Waiting /> : children(data)}
    </>
  );
}

export interface Column<T> {
  readonly head: string;
  cell(row: T): ComponentChildren;
  readonly isNumber?: boolean;
  /** Names the row. */
  readonly isHead?: boolean;
  /** The text may be of any length and without a blank. */
  readonly isLong?: boolean;
}

/** A table with at most this many columns stays a table on a tablet. */
const FEW_COLUMNS = 6;
const MANY_COLUMNS = 10;

/** Returns the screen width below which its rows become cards. */
function tooNarrowFor(columns: number): string {
  const width = columns <= FEW_COLUMNS ? 46 : columns <= MANY_COLUMNS ? 64 : 76;
  return `(max-width: ${width}rem)`;
}

/** A table; where the screen is narrow, each row becomes a card. The roles keep it a table for screen readers there, too. */
export function Table<T>({
  caption,
  columns,
  rows,
  keyOf,
  empty,
}: {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  keyOf(row: T): string;
  readonly empty: ComponentChildren;
}): JSX.Element {
  const hasCards = useMedia(tooNarrowFor(columns.length));
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <table role="table" aria-label={caption} class={hasCards ? "cards" : undefined}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ head, isNumber }) => (
            <th key={head} role="columnheader" scope="col" class={isNumber === true ? "number" : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map((column) => (
              <Cell key={column.head} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell<T>({ column, row }: { readonly column: Column<T>; readonly row: T }): JSX.Element {
  const { head, isNumber, isHead, isLong } = column;
  const style = isNumber === true ? "number" : isLong === true ? "long" : undefined;
  const content = column.cell(row);
  const isNothing = content === null || content === undefined || content === "";
  const shown = isNothing ? <span class="soft">–</span> : content;
  const inner = (
    <>
      <span class="cell-head" aria-hidden="true">
        {head}
      </span>
      <span class="cell-value">{shown}</span>
    </>
  );
  if (isHead === true) {
    return (
      <th role="rowheader" scope="row" class={style}>
        {inner}
      </th>
    );
  }
  return (
    <td role="cell" class={isNothing ? `nothing ${style ?? ""}` : style}>
      {inner}
    </td>
  );
}

/** A time in the viewer's zone, with UTC on hover. */
export function Time({ at, precision }: { readonly at: string; readonly precision?: "day" | "second" }): JSX.Element {
  return (
    <time dateTime={at} title={utcTime(at)}>
      {localTime(at, precision)}
    </time>
  );
}

/** How long ago something was, kept up to date. */
export function Ago({ at }: { readonly at: string }): JSX.Element {
  const now = useNow(1_000);
  return (
    <time dateTime={at} title={utcTime(at)}>
      {ago(at, now)}
    </time>
  );
}

export type Tone = "good" | "bad" | "warn" | "busy" | "quiet";

/** A state: its colour and its sign repeat the meaning of the word. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Channels({ names }: { readonly names: readonly string[] }): JSX.Element {
  if (names.length === 0) return <span class="soft">none</span>;
  return <>{names.map(channelName).join(", ")}</>;
}

/** A text with a button to copy it. */
export function Copy({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const shown = useRef<HTMLElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2_000);
    } catch {
      // Without TLS there is no clipboard: the text is selected for the person to copy.
      if (shown.current !== null) getSelection()?.selectAllChildren(shown.current);
    }
  };
  return (
    <span class="copy">
      <code ref={shown}>{text}</code>
      <button type="button" class="small-button" aria-label={`Copy ${label}`} onClick={() => void copy()}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}

export function More({
  more,
  isLoading,
}: {
  readonly more: (() => void) | null;
  readonly isLoading: boolean;
}): JSX.Element | null {
  if (more === null) return isLoading ? <Waiting /> : null;
  return (
    <p>
      <button type="button" onClick={more}>
        Show more
      </button>
    </p>
  );
}

/** Names and values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? "–"}</dd>
        </div>
      ))}
    </dl>
  );
}
