import type { Elysia } from "elysia";
import { ApiError } from "../../../domain/errors.ts";
import type { LinkOf } from "../../../domain/links.ts";
import type { Tenant } from "../../../domain/tenant.ts";
import type { Exchange } from "../../../http/exchange.ts";
import type { FrontDoor } from "../../../http/front-door.ts";
import { linkToken } from "./link-token.ts";
import { askPage, donePage, PAGE_HEADERS } from "./unsubscribe-page.ts";

/**
 * `/u/{token}`, where `List-Unsubscribe` leads (RFC 8058). GET only asks, because programs follow links that nobody
 * clicked. POST unsubscribes, from the page's button or a mail program's, as often as it comes. The token says all
 * that is needed, so whatever a body holds is left unread.
 */
export function unsubscribeRoutes(app: Elysia, door: FrontDoor): void {
  const ask = async (exchange: Exchange) => {
    const { tenant } = await find(door, exchange);
    return exchange.body(200, askPage(tenant.name), { ...door.ofPages, ...PAGE_HEADERS });
  };
  const unsubscribe = async (exchange: Exchange) => {
    const { tenant, link } = await find(door, exchange);
    // Written down before it is answered: whoever reads the answer counts on it.
    await door.ports.suppressions.put(tenant, link.recipient, "unsubscribed");
    return exchange.body(200, donePage(tenant.name), { ...door.ofPages, ...PAGE_HEADERS });
  };
  app.get("/u/:token", ({ request }) => door.serve("unsubscribe_page", request, ask));
  app.post("/u/:token", ({ request }) => door.serve("unsubscribe", request, unsubscribe));
}

/** Throws 404 for what is no token of ours. */
async function find(
  door: FrontDoor,
  { request }: Exchange,
): Promise<{ readonly tenant: Tenant; readonly link: LinkOf<"unsubscribe"> }> {
  const { links, directory } = door.ports;
  const link = links.read("unsubscribe", linkToken(request));
  const tenant = link === null ? null : await directory.byId(link.tenantId);
  if (link === null || tenant === null)
    throw new ApiError(404, "this unsubscribe link is not one of ours, or not whole");
  return { tenant, link };
}
