import type { Elysia } from "elysia";
import { ApiError } from "../../../domain/errors.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { linkToken } from "./link-token.ts";
import { isLookAhead } from "./look-ahead.ts";

/** The tracking pixel and the links that messages carry. Nobody has to say who they are; nothing is counted twice. */
export function trackingRoutes(app: Elysia, door: FrontDoor): void {
  const open = (exchange: Exchange) => answerOpen(door, exchange);
  const click = (exchange: Exchange) => answerClick(door, exchange);
  app.get("/t/o/:token.gif", ({ request }) => door.serve("open", request, open));
  app.get("/t/c/:token", ({ request }) => door.serve("click", request, click));
}

/** The same answer to whatever is asked, so that nobody learns here which tokens there are. */
function answerOpen(door: FrontDoor, exchange: Exchange): Response {
  const { links, engagements } = door.ports;
  const { request } = exchange;
  const link = links.read("open", linkToken(request).replace(/\.gif$/, ""));
  if (link !== null && !isLookAhead(request)) {
    engagements.note({ type: "opened", tenantId: link.tenantId, jobId: link.jobId, url: null });
  }
  return exchange.body(200, PIXEL, { ...NEVER_CACHED, "content-type": "image/gif" });
}

/** Leads only where a token of ours says, so that nobody can lend a link of theirs our name. */
function answerClick(door: FrontDoor, exchange: Exchange): Response {
  const { links, engagements } = door.ports;
  const { request } = exchange;
  const link = links.read("click", linkToken(request));
  if (link === null || !/^https?:\/\//i.test(link.url)) throw new ApiError(404, "there is no such link");
  const { tenantId, jobId, url } = link;
  if (!isLookAhead(request)) engagements.note({ type: "clicked", tenantId, jobId, url });
  return exchange.body(302, null, {
    ...door.ofPages,
    ...NEVER_CACHED,
    location: url,
    "referrer-policy": "no-referrer",
  });
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
