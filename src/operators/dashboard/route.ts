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

/** Returns the address of a page; empty members of the query are left out. */
export function hrefTo(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? "") !== "");
  const search = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export function goTo(parts: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): void {
  location.hash = hrefTo(parts, query);
}
