/**
 * Whether nobody follows the link yet: HEAD asks about the answer alone, and programs that fetch before a person asks
 * say so in `Sec-Purpose` (Fetch, "prefetch", also with parameters), older ones in `Purpose`, `X-Purpose` or `X-Moz`.
 */
export function isLookAhead({ method, headers }: Request): boolean {
  return method === "HEAD" || PURPOSES.some((name) => /prefetch|prerender|preview/i.test(headers.get(name) ?? ""));
}

const PURPOSES = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
