import type { AnswerHeaders } from "./exchange.ts";

/** An operation that will go. docs/versions.md says when it may. */
export interface Deprecation {
  /** The day from which it is deprecated, as `2027-01-31`. */
  readonly since: string;
  /** The day on which it stops answering, if that is known. */
  readonly sunset?: string;
  /** The page that says what to use instead. */
  readonly link: string;
}

/** The headers that tell programs (RFC 9745 and RFC 8594): days begin at midnight, UTC. */
export function deprecationHeaders({ since, sunset, link }: Deprecation): AnswerHeaders {
  return {
    deprecation: `@${readDay(since).getTime() / 1000}`,
    link: `<${link}>; rel="deprecation"; type="text/html"`,
    ...(sunset === undefined ? null : { sunset: readDay(sunset).toUTCString() }),
  };
}

function readDay(text: string): Date {
  const day = new Date(`${text}T00:00:00Z`);
  if (Number.isNaN(day.getTime())) throw new TypeError(`not a day like 2027-01-31: ${text}`);
  return day;
}
