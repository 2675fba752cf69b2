import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { noSuch } from "../../../http/store-results.ts";
import { identifyProgram, type KnownProgram } from "./known-programs.ts";
import { BROKEN_CLICK, FAILED } from "./link-pages.ts";
import type { LinkReader } from "./link-tokens.ts";
import { explainErrors, humanLink, linkToken, publicLink } from "./public-link.ts";

export interface TrackingEndpointPorts {
  readonly links: LinkReader;
  /** Records readers' actions; returns at once. */
  readonly engagements: { note(engagement: Engagement): void };
}

/** A message was opened, or a link in it clicked. */
interface Engagement {
  readonly type: "opened" | "clicked";
  readonly tenantId: string;
  readonly jobId: string;
  /** Target of the click; null for an open. */
  readonly url: string | null;
  /** The requesting program; null if it is unknown. */
  readonly by: KnownProgram | null;
}

/** Serves the tracking pixel and the links in messages. Readers are not authenticated, and each action is counted once. */
export function trackingEndpoints(ports: TrackingEndpointPorts): readonly Endpoint[] {
  return [
    endpoint({
      ...publicLink,
      method: "GET",
      path: "/t/o/:token.gif",
      name: "open",
      operation: "trackOpen",
      summary: "The tracking pixel: always the same picture, for an unknown token, too",
      answers: {
        200: {
          description: "A transparent GIF of one pixel, never cached.",
          schema: null,
          mediaType: "image/gif",
        },
      },
      handle: (_, exchange) => answerOpen(ports, exchange),
    }),
    endpoint({
      ...humanLink,
      method: "GET",
      path: "/t/c/:token",
      name: "click",
      operation: "trackClick",
      summary: "Leads to the address that the token carries",
      answers: {
        302: {
          description: "The way there.",
          schema: null,
          headers: { Location: "The address that the token carries." },
        },
      },
      handle: (door, exchange) => answerClick(ports, door, exchange),
    }),
  ];
}

/** Answers every request alike, so a caller cannot find out which tokens exist. */
function answerOpen({ links, engagements }: TrackingEndpointPorts, exchange: Exchange): Response {
  const { request } = exchange;
  const link = links.read("open", linkToken(request).replace(/\.gif$/, ""));
  if (link !== null && !isLookAhead(request)) {
    engagements.note({
      type: "opened",
      tenantId: link.tenantId,
      jobId: link.jobId,
      url: null,
      by: readProgram(request),
    });
  }
  return exchange.body(200, PIXEL, { ...NEVER_CACHED, "content-type": "image/gif" });
}

/** Redirects only to the target in a valid token, so other links cannot be disguised with our domain. */
function answerClick({ links, engagements }: TrackingEndpointPorts, door: FrontDoor, exchange: Exchange): Response {
  explainErrors(door, exchange, { broken: BROKEN_CLICK, failed: FAILED });
  const { request } = exchange;
  const link = links.read("click", linkToken(request));
  if (link === null || !/^https?:\/\//i.test(link.url)) throw noSuch("link");
  const { tenantId, jobId, url } = link;
  if (!isLookAhead(request)) engagements.note({ type: "clicked", tenantId, jobId, url, by: readProgram(request) });
  return exchange.body(302, null, {
    ...door.ofPages,
    ...NEVER_CACHED,
    location: url,
    "referrer-policy": "no-referrer",
  });
}

function readProgram({ headers }: Request): KnownProgram | null {
  return identifyProgram(headers.get("user-agent") ?? "");
}

/** One transparent pixel (GIF89a). */
const PIXEL = Uint8Array.from(atob("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"), (byte) =>
  byte.charCodeAt(0),
);

const NEVER_CACHED = {
  "cache-control": "no-store, no-cache, must-revalidate, private",
  pragma: "no-cache",
  expires: "0",
};

/**
 * Whether the request is not a person following the link: HEAD, or a prefetch, which clients announce in `Sec-Purpose`
 * (Fetch, "prefetch", possibly with parameters), or, if older, in `Purpose`, `X-Purpose` or `X-Moz`.
 */
function isLookAhead({ method, headers }: Request): boolean {
  return method === "HEAD" || PURPOSES.some((name) => /prefetch|prerender|preview/i.test(headers.get(name) ?? ""));
}

const PURPOSES = ["sec-purpose", "purpose", "x-purpose", "x-moz"];
