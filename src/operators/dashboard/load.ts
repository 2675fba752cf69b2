import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Problem, toProblem } from "./api.ts";

/** Data loaded from the API. While it reloads, the previous data stays. */
export interface Loaded<T> {
  readonly data: T | null;
  readonly problem: Problem | null;
  readonly isLoading: boolean;
  reload(): void;
}

/** Loads data, and reloads it whenever `key` changes. */
export function useLoad<T>(read: (signal: AbortSignal) => Promise<T>, key: string): Loaded<T> {
  const [state, setState] = useState<{ data: T | null; problem: Problem | null; isLoading: boolean; key: string }>({
    data: null,
    problem: null,
    isLoading: true,
    key,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const ending = new AbortController();
    setState((before) => ({ ...(before.key === key ? before : { data: null, problem: null }), isLoading: true, key }));
    latest.current(ending.signal).then(
      (data) => ending.signal.aborted || setState({ data, problem: null, isLoading: false, key }),
      (error: unknown) =>
        ending.signal.aborted || setState((before) => ({ ...before, problem: toProblem(error), isLoading: false })),
    );
    return () => ending.abort();
  }, [key, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  // Data of another key is not shown under this one.
  return { ...(state.key === key ? state : { data: null, problem: null, isLoading: true }), reload };
}

/** A list that is read page by page. */
export interface LoadedPages<T> extends Omit<Loaded<readonly T[]>, "data"> {
  readonly items: readonly T[] | null;
  /** Null: there are no more. */
  readonly more: (() => void) | null;
}

interface PageOf<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

interface Pages<T> {
  readonly key: string;
  readonly items: readonly T[] | null;
  readonly next: string | null;
  readonly problem: Problem | null;
  readonly isLoading: boolean;
}

/** Reads the first page of a list, and more on demand. Starts anew whenever `key` changes. */
export function useLoadPages<T>(
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<PageOf<T>>,
  key: string,
): LoadedPages<T> {
  const none = { key, items: null, next: null, problem: null, isLoading: true };
  const [state, setState] = useState<Pages<T>>(none);
  const [round, setRound] = useState(0);
  const latest = useRef(read);
  latest.current = read;
  const ending = useRef(new AbortController());
  const add = (before: readonly T[], cursor: string | undefined, { signal }: AbortController) => {
    setState((known) => ({ ...(known.key === key ? known : none), isLoading: true }));
    latest.current(cursor, signal).then(
      ({ items, next }) =>
        signal.aborted || setState({ key, items: [...before, ...items], next, problem: null, isLoading: false }),
      (error: unknown) =>
        signal.aborted || setState((known) => ({ ...known, problem: toProblem(error), isLoading: false })),
    );
  };
  useEffect(() => {
    ending.current = new AbortController();
    add([], undefined, ending.current);
    return () => ending.current.abort();
  }, [key, round]);
  const shown = state.key === key ? state : none;
  const { next, items } = shown;
  return {
    ...shown,
    more: next === null || shown.isLoading ? null : () => add(items ?? [], next, ending.current),
    reload: () => setRound((before) => before + 1),
  };
}

/** An action on a button or form: one at a time, with its error. */
export interface Action {
  readonly isRunning: boolean;
  readonly problem: Problem | null;
  /** True: it succeeded. */
  run(work: () => Promise<unknown>): Promise<boolean>;
  clear(): void;
}

export function useAction(): Action {
  const [state, setState] = useState<{ isRunning: boolean; problem: Problem | null }>({
    isRunning: false,
    problem: null,
  });
  return {
    ...state,
    async run(work) {
      setState({ isRunning: true, problem: null });
      try {
        await work();
        setState({ isRunning: false, problem: null });
        return true;
      } catch (error) {
        setState({ isRunning: false, problem: toProblem(error) });
        return false;
      }
    },
    clear: () => setState({ isRunning: false, problem: null }),
  };
}

/** The time, renewed every `everyMs` while the page is visible. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Tracks whether the viewer's screen matches a media query. */
export function useMedia(query: string): boolean {
  const [isSo, setSo] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const follow = () => setSo(media.matches);
    follow();
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, [query]);
  return isSo;
}
