import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { useLoad } from "./load.ts";
import { hrefTo } from "./route.ts";
import { Waiting } from "./ui.tsx";

/*
 * One box that finds everything, and the keys that work on every page.
 */

const JOB_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PHONE = /^\+?[\d ()-]{6,}$/;
const TENANTS_SHOWN = 8;
const TYPING_PAUSE_MS = 200;

interface Hit {
  readonly href: string;
  readonly kind: string;
  readonly text: string;
}

/** A button for the search, and the dialog that it or the key `/` opens. */
export function Finder({ tenant }: { readonly tenant: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  useKeys(() => setOpen(true));
  return (
    <>
      <button type="button" class="finder-button" onClick={() => setOpen(true)}>
        Search <kbd>/</kbd>
      </button>
      {isOpen ? <FinderDialog tenant={tenant} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function FinderDialog({ tenant, onClose }: { readonly tenant: string; onClose(): void }): JSX.Element {
  const [typed, setTyped] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const word = typed.trim();
  const { data, problem } = useLoad(async (signal) => {
    if (word === "") return [];
    await new Promise((go) => setTimeout(go, TYPING_PAUSE_MS));
    return signal.aborted ? [] : findHits(word, tenant, signal);
  }, `${tenant} ${word}`);
  // Enter may come before the answer does.
  const isEntered = useRef(false);
  useEffect(() => {
    if (isEntered.current && data !== null) list.current?.querySelector("a")?.click();
    if (data !== null) isEntered.current = false;
  }, [data]);
  const links = () => [...(list.current?.querySelectorAll("a") ?? [])];
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" && event.currentTarget instanceof HTMLInputElement) {
      event.preventDefault();
      isEntered.current = links().length === 0;
      links()[0]?.click();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const [all, step] = [links(), event.key === "ArrowDown" ? 1 : -1];
    const at = all.findIndex((each) => each === document.activeElement) + step;
    all[Math.min(Math.max(at, 0), all.length - 1)]?.focus();
  };
  return (
    <Dialog title="Search" onClose={onClose}>
      <div class="field">
        <label for="finder">Address, number, job id, tenant or template</label>
        <input
          id="finder"
          type="search"
          autocomplete="off"
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          onKeyDown={onKey}
        />
        <p class="hint">
          Subjects are not kept in clear, so they cannot be searched.
          {tenant === "" ? " Templates are found on a tenant's pages." : ` Templates are those of ${tenant}.`}
        </p>
      </div>
      {problem === null ? null : <p class="problem">{problem.text}</p>}
      {data === null && problem === null ? <Waiting what="Searching" /> : null}
      {data !== null && word !== "" && data.length === 0 ? <p class="empty">Nothing is called so.</p> : null}
      <ul class="hits" ref={list}>
        {(data ?? []).map(({ href, kind, text }) => (
          <li key={`${kind} ${href}`}>
            <a href={href} onClick={onClose} onKeyDown={onKey}>
              <span class="soft">{kind}</span> {text}
            </a>
          </li>
        ))}
      </ul>
      <KeysHint />
    </Dialog>
  );
}

function KeysHint(): JSX.Element {
  return (
    <p class="hint">
      Everywhere: <kbd>/</kbd> search, <kbd>j</kbd> and <kbd>k</kbd> down and up in a list, <kbd>Enter</kbd> opens,{" "}
      <kbd>Esc</kbd> closes.
    </p>
  );
}

/** Finds the pages that the word may name, the likeliest first. */
async function findHits(word: string, tenant: string, signal: AbortSignal): Promise<readonly Hit[]> {
  if (JOB_ID.test(word)) {
    const { jobs } = await call("searchJobs", { query: { job_id: word } }, { signal });
    return jobs.map(({ tenant_id, job_id }) => ({
      href: hrefTo(["messages", tenant_id, job_id]),
      kind: "Message",
      text: `${job_id} of ${tenant_id}`,
    }));
  }
  const [tenants, templates] = await Promise.all([tenantsLike(word, signal), templatesLike(word, tenant, signal)]);
  const isRecipient = word.includes("@") || PHONE.test(word);
  const to = { href: hrefTo(["messages"], { who: word }), kind: "Messages to", text: word };
  const recipients = isRecipient
    ? [
        to,
        ...(tenant === ""
          ? []
          : [{ ...to, href: hrefTo(["messages"], { who: word, tenant }), text: `${word}, of ${tenant}` }]),
      ]
    : [];
  return [...recipients, ...tenants, ...templates];
}

async function tenantsLike(word: string, signal: AbortSignal): Promise<readonly Hit[]> {
  const { tenants } = await call("listTenants", { query: { find: word, limit: TENANTS_SHOWN } }, { signal });
  return tenants.flatMap(({ id, name }) => [
    { href: hrefTo(["tenants", id]), kind: "Tenant", text: name === id ? id : `${name} (${id})` },
    { href: hrefTo(["messages"], { tenant: id }), kind: "Messages of", text: id },
  ]);
}

async function templatesLike(word: string, tenant: string, signal: AbortSignal): Promise<readonly Hit[]> {
  if (tenant === "") return [];
  const { templates } = await call("listTemplates", { path: { id: tenant } }, { signal });
  return templates
    .filter(({ slug }) => slug.includes(word.toLowerCase()))
    .flatMap(({ slug }) => [
      { href: hrefTo(["tenants", tenant, "templates", slug]), kind: "Template", text: slug },
      { href: hrefTo(["messages"], { tenant, template: slug }), kind: "Messages from", text: slug },
    ]);
}

/** `/` searches; `j` and `k` go down and up through the rows of the page's lists. */
function useKeys(onSearch: () => void): void {
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      if (event.key === "/") {
        event.preventDefault();
        onSearch();
      }
      if (event.key === "j" || event.key === "k") moveFocus(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", follow);
    return () => removeEventListener("keydown", follow);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable]") !== null;
}

/** To the first link of the next row, or of the one before. */
function moveFocus(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main tbody tr")].filter((row) => linkIn(row) !== null);
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = at === -1 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1);
  const row = rows[next];
  if (row === undefined) return;
  linkIn(row)?.focus();
  row.scrollIntoView({ block: "nearest" });
}

function linkIn(row: HTMLElement): HTMLElement | null {
  return row.querySelector<HTMLElement>("th a, td a, summary, button");
}
