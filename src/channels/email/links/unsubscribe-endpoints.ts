import { Type } from "@sinclair/typebox";
import { isOutage } from "../../../domain/errors.ts";
import type { SuppressionReason } from "../../../domain/job.ts";
import { SharedRuns } from "../../../domain/shared-runs.ts";
import type { Done, Missing } from "../../../domain/store-result.ts";
import type { Tenant, TenantDirectory } from "../../../domain/tenant.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { Exchange } from "../../../http/exchange.ts";
import { pageAnswer } from "../../../http/page.ts";
import { noSuch, resultOf } from "../../../http/store-results.ts";
import { alreadyPage, askPage, BROKEN_UNSUBSCRIBE, donePage, FAILED, UNSUBSCRIBE_FAILED } from "./link-pages.ts";
import type { LinkOf, LinkReader } from "./link-tokens.ts";
import { explainErrors, humanLink, linkToken } from "./public-link.ts";

export interface UnsubscribeEndpointPorts {
  readonly links: LinkReader;
  readonly directory: Pick<TenantDirectory, "byId">;
  /** The recipients that a tenant must not send to. */
  readonly suppressions: {
    /** Puts it on the list, and writes nothing where it is there for this reason. */
    ensure(
      tenant: Tenant,
      of: LinkOf<"unsubscribe">,
      reason: "unsubscribed",
    ): Promise<Done<unknown> | Missing<"tenant">>;
  };
  /** `address` is normalised. */
  readonly registry: { suppressionReason(tenantId: string, address: string): Promise<SuppressionReason | null> };
}

const OneClick = Type.Object({ "List-Unsubscribe": Type.Optional(Type.Literal("One-Click")) });

/**
 * `/u/{token}`, the target of `List-Unsubscribe` (RFC 8058). GET only shows a confirmation page, because programs
 * follow links that nobody clicked. POST unsubscribes, from the page's button or a mail program, and is safe to repeat.
 * The token holds all that is needed, so the body is not read.
 */
export function unsubscribeEndpoints(ports: UnsubscribeEndpointPorts): readonly Endpoint[] {
  const runs = new SharedRuns<Done<unknown> | Missing<"tenant">>();
  return [
    endpoint({
      ...humanLink,
      method: "GET",
      path: "/u/:token",
      name: "unsubscribe_page",
      operation: "askUnsubscribe",
      summary: "A page that asks whether to unsubscribe, or says that it is done already",
      answers: { 200: { description: "The page.", schema: null, mediaType: "text/html" } },
      async handle(door, exchange) {
        explainErrors(door, exchange, { broken: BROKEN_UNSUBSCRIBE, failed: FAILED });
        const { tenant, link } = await find(ports, exchange);
        const page = (await hasUnsubscribed(ports, link)) ? alreadyPage : askPage;
        return pageAnswer(door, exchange, { status: 200, content: page(tenant.name) });
      },
    }),
    endpoint({
      ...humanLink,
      method: "POST",
      path: "/u/:token",
      name: "unsubscribe",
      operation: "unsubscribe",
      summary: "Unsubscribes the recipient (RFC 8058), as often as it is called",
      body: {
        schema: OneClick,
        mediaType: ["application/x-www-form-urlencoded", "multipart/form-data"],
        isOptional: true,
        examples: [{ "List-Unsubscribe": "One-Click" }],
      },
      answers: { 200: { description: "A page that says so.", schema: null, mediaType: "text/html" } },
      async handle(door, exchange) {
        explainErrors(door, exchange, { broken: BROKEN_UNSUBSCRIBE, failed: UNSUBSCRIBE_FAILED });
        const { tenant, link } = await find(ports, exchange);
        const { tenantId, recipient } = link;
        // Stored before the answer is sent: the reader relies on the answer. However often a link is repeated, one call works on it.
        const stored = await runs.run(`${tenantId} ${recipient}`, () =>
          ports.suppressions.ensure(tenant, link, "unsubscribed"),
        );
        resultOf(stored);
        return pageAnswer(door, exchange, { status: 200, content: donePage(tenant.name) });
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

/** Whether the reader did it before. While nobody can tell, they are asked: a second click does no harm. */
async function hasUnsubscribed(
  { registry }: UnsubscribeEndpointPorts,
  { tenantId, recipient }: LinkOf<"unsubscribe">,
): Promise<boolean> {
  try {
    return (await registry.suppressionReason(tenantId, recipient)) === "unsubscribed";
  } catch (error) {
    if (isOutage(error)) return false;
    throw error;
  }
}
