import { useEffect, useState } from "preact/hooks";

/** The page that the address names: the part after the `#`. */
export interface Route {
  /** Its path, part by part, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The range of time, which all pages share. */
const SHARED = ["range", "from", "to"] as const;

function sharedNow(): Readonly<Record<string, string>> {
  const { query } = parseRoute(location.hash);
  return Object.fromEntries(SHARED.map((name) => [name, query.get(name) ?? ""]));
}

/** Returns the address of a page; empty members of the query are left out. Without a range, it has that of the present page. */
export function hrefTo(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const isRanged = SHARED.some((name) => query[name] !== undefined);
  const given = Object.entries({ ...(isRanged ? {} : sharedNow()), ...query }).filter(
    (entry): entry is [string, string] => (entry[1] ?? "") !== "",
  );
  const search = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export function goTo(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): void {
  location.hash = hrefTo(parts, query);
}
