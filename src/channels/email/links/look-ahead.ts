/**
 * Whether the request is not a person following the link: HEAD, or a prefetch, which clients announce in `Sec-Purpose`
 * (Fetch, "prefetch", possibly with parameters), or, if older, in `Purpose`, `X-Purpose` or `X-Moz`.
 */
export function isLookAhead({ method, headers }: Request): boolean {
  return method === "HEAD" || PURPOSES.some((name) => /prefetch|prerender|preview/i.test(headers.get(name) ?? ""));
}

const PURPOSES = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
