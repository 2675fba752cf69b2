import { Type } from "@sinclair/typebox";
import type { Done, Missing } from "../../../domain/store-result.ts";
import type { Tenant, TenantDirectory } from "../../../domain/tenant.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { Exchange } from "../../../http/exchange.ts";
import { noSuch, resultOf } from "../../../http/store-results.ts";
import type { LinkOf, LinkReader } from "./link-tokens.ts";
import { linkToken, NO_SUCH_LINK, publicLink } from "./public-link.ts";
import { askPage, donePage, PAGE_HEADERS } from "./unsubscribe-page.ts";

export interface UnsubscribeEndpointPorts {
  readonly links: LinkReader;
  readonly directory: Pick<TenantDirectory, "byId">;
  /** The recipients that a tenant must not send to. */
  readonly suppressions: {
    put(tenant: Tenant, recipient: string, reason: "unsubscribed"): Promise<Done<unknown> | Missing<"tenant">>;
  };
}

const OneClick = Type.Object({ "List-Unsubscribe": Type.Optional(Type.Literal("One-Click")) });

/**
 * `/u/{token}`, the target of `List-Unsubscribe` (RFC 8058). GET only shows a confirmation page, because programs
 * follow links that nobody clicked. POST unsubscribes, from the page's button or a mail program, and is safe to repeat.
 * The token holds all that is needed, so the body is not read.
 */
export function unsubscribeEndpoints(ports: UnsubscribeEndpointPorts): readonly Endpoint[] {
  return [
    endpoint({
      ...publicLink,
      method: "GET",
      path: "/u/:token",
      name: "unsubscribe_page",
      operation: "askUnsubscribe",
      summary: "A page that asks whether to unsubscribe",
      answers: { 200: { description: "The page.", schema: null, mediaType: "text/html" } },
      fails: { 404: NO_SUCH_LINK },
      async handle(door, exchange) {
        const { tenant } = await find(ports, exchange);
        return exchange.body(200, askPage(tenant.name), { ...door.ofPages, ...PAGE_HEADERS });
      },
    }),
    endpoint({
      ...publicLink,
      method: "POST",
      path: "/u/:token",
      name: "unsubscribe",
      operation: "unsubscribe",
      summary: "Unsubscribes the recipient (RFC 8058), as often as it is called",
      body: {
        schema: OneClick,
        mediaType: ["application/x-www-form-urlencoded", "multipart/form-data"],
        isOptional: true,
      },
      answers: { 200: { description: "A page that says so.", schema: null, mediaType: "text/html" } },
      fails: { 404: NO_SUCH_LINK },
      async handle(door, exchange) {
        const { tenant, link } = await find(ports, exchange);
        // Stored before the answer is sent: the reader relies on the answer.
        resultOf(await ports.suppressions.put(tenant, link.recipient, "unsubscribed"));
        return exchange.body(200, donePage(tenant.name), { ...door.ofPages, ...PAGE_HEADERS });
      },
    }),
  ];
}

/** Throws 404 if the token is invalid. */
async function find(
  { links, directory }: UnsubscribeEndpointPorts,
  { request }: Exchange,
): Promise<{ readonly tenant: Tenant; readonly link: LinkOf<"unsubscribe"> }> {
  const link = links.read("unsubscribe", linkToken(request));
  const tenant = link === null ? null : await directory.byId(link.tenantId);
  if (link === null || tenant === null) throw noSuch("link");
  return { tenant, link };
}
