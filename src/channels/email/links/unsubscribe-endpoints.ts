import { Type } from "@sinclair/typebox";
import { isOutage } from "../../../domain/errors.ts";
import type { SuppressionReason } from "../../../domain/jobs/job.ts";
import { SharedRuns } from "../../../domain/shared-runs.ts";
import type { Done, Missing } from "../../../domain/store-result.ts";
import { suppressionName } from "../../../domain/tenants/suppressions.ts";
import type { Tenant, TenantDirectory } from "../../../domain/tenants/tenant.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { Exchange } from "../../../http/exchange.ts";
import { pageAnswer } from "../../../http/page.ts";
import { type QueryParameter, readQueryString } from "../../../http/parameters.ts";
import { noSuch, requireResult } from "../../../http/store-results.ts";
import {
  BROKEN_UNSUBSCRIBE,
  CHOICES,
  type Choice,
  FAILED,
  type Subscription,
  subscriptionPage,
  UNSUBSCRIBE_FAILED,
} from "./link-pages.ts";
import { type LinkReader, readUnsubscribeLink, type UnsubscribeLink } from "./link-tokens.ts";
import { explainErrors, humanLink, linkToken } from "./public-link.ts";

export interface UnsubscribeEndpointPorts {
  readonly links: LinkReader;
  readonly directory: Pick<TenantDirectory, "byId">;
  /** The recipients that a tenant must not send to. */
  readonly suppressions: {
    /**
     * Adds the recipient to the list, for the topic alone if there is one. Writes only if the recipient is not yet on
     * it for this reason.
     */
    ensure(tenant: Tenant, of: Leaving, reason: "unsubscribed"): Promise<Done<unknown> | Missing<"tenant">>;
    /** Removes the recipient from the list, if it is there for this reason. */
    remove(tenant: Tenant, name: string, reason: "unsubscribed"): Promise<Done<unknown> | Missing<"tenant">>;
  };
  /** `name`: the recipient's name on the list. */
  readonly registry: { suppressionReason(tenantId: string, name: string): Promise<SuppressionReason | null> };
}

interface Leaving {
  readonly jobId: string;
  readonly recipient: string;
  readonly topic?: string;
}

const OneClick = Type.Object({ "List-Unsubscribe": Type.Optional(Type.Literal("One-Click")) });

/**
 * An unknown value, such as a mail program's addition to the address, or a choice that the message does not offer
 * counts as no choice.
 */
const choiceParameter: QueryParameter<Choice | null> = {
  description:
    `The choice behind a button of the page: ${CHOICES.join(", ")}. Without one of these the reader leaves the message's topic, or ` +
    "altogether if it has none.",
  schema: Type.String(),
  example: "all",
  read: (text) => CHOICES.find((choice) => choice === text) ?? null,
};

/**
 * `/u/{token}`, the target of `List-Unsubscribe` (RFC 8058). GET only returns a page with choices, because programs
 * follow links without a person's click. POST unsubscribes, from the page's button or a mail program, and is safe to
 * repeat. Token and address contain all the data, so the body is not read.
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
      summary: "A page that asks what to unsubscribe from, or says that it is done already and offers to undo it",
      answers: { 200: { description: "The page.", schema: null, mediaType: "text/html" } },
      async handle(door, exchange) {
        explainErrors(door, exchange, { broken: BROKEN_UNSUBSCRIBE, failed: FAILED });
        const { tenant, link } = await find(ports, exchange);
        const subscription = await loadSubscription(ports, tenant, link);
        return pageAnswer(door, exchange, { status: 200, content: subscriptionPage(subscription, null) });
      },
    }),
    endpoint({
      ...humanLink,
      method: "POST",
      path: "/u/:token",
      name: "unsubscribe",
      operation: "unsubscribe",
      summary: "Unsubscribes the recipient from the message's topic (RFC 8058), as often as it is called",
      query: { choice: choiceParameter },
      body: {
        schema: OneClick,
        mediaType: ["application/x-www-form-urlencoded", "multipart/form-data"],
        isOptional: true,
        examples: [{ "List-Unsubscribe": "One-Click" }],
      },
      answers: { 200: { description: "A page that says so.", schema: null, mediaType: "text/html" } },
      async handle(door, exchange) {
        const given = choiceParameter.read(readQueryString(exchange.request.url).get("choice") ?? undefined);
        const isUndoing = given === "undo_topic" || given === "undo_all";
        const failed = isUndoing ? FAILED : UNSUBSCRIBE_FAILED;
        explainErrors(door, exchange, { broken: BROKEN_UNSUBSCRIBE, failed });
        const { tenant, link } = await find(ports, exchange);
        const choice = choiceFor(link, given);
        const { tenantId, recipient } = link;
        const topic = choice === "all" || choice === "undo_all" ? undefined : getTopic(link);
        // Stored before the answer is sent: the reader relies on the answer. However often a link is repeated, one call works on it.
        const stored = await runs.run(`${tenantId} ${choice} ${suppressionName(recipient, topic)}`, () =>
          isUndoing
            ? ports.suppressions.remove(tenant, suppressionName(recipient, topic), "unsubscribed")
            : ports.suppressions.ensure(tenant, leaving(link, topic), "unsubscribed"),
        );
        requireResult(stored);
        const now = topic === undefined ? { hasLeftAll: !isUndoing } : { hasLeftTopic: !isUndoing };
        const subscription = await loadSubscription(ports, tenant, link, now);
        const content = subscriptionPage(subscription, isUndoing ? "returned" : "left");
        return pageAnswer(door, exchange, { status: 200, content });
      },
    }),
  ];
}

function getTopic(link: UnsubscribeLink): string | undefined {
  return link.purpose === "unsubscribe topic" ? link.topic : undefined;
}

/** Ignores the topic's choices for a message without a topic. */
function choiceFor(link: UnsubscribeLink, given: Choice | null): Choice {
  if (link.purpose === "unsubscribe topic") return given ?? "topic";
  return given === "undo_topic" || given === "undo_all" ? "undo_all" : "all";
}

function leaving({ jobId, recipient }: UnsubscribeLink, topic: string | undefined): Leaving {
  return topic === undefined ? { jobId, recipient } : { jobId, recipient, topic };
}

/** Throws 404 if the token is invalid. */
async function find(
  { links, directory }: UnsubscribeEndpointPorts,
  { request }: Exchange,
): Promise<{ readonly tenant: Tenant; readonly link: UnsubscribeLink }> {
  const link = readUnsubscribeLink(links, linkToken(request));
  const tenant = link === null ? null : await directory.byId(link.tenantId);
  if (link === null || tenant === null) throw noSuch("link");
  return { tenant, link };
}

/**
 * Reads the reader's state. If that fails, the reader counts as subscribed, because a second click is harmless. `now`:
 * the parts that are already known.
 */
async function loadSubscription(
  ports: UnsubscribeEndpointPorts,
  { name: tenantName }: Tenant,
  link: UnsubscribeLink,
  now: Partial<Pick<Subscription, "hasLeftAll" | "hasLeftTopic">> = {},
): Promise<Subscription> {
  const topic = getTopic(link);
  const [hasLeftAll, hasLeftTopic] = await Promise.all([
    now.hasLeftAll ?? hasLeft(ports, link, undefined),
    now.hasLeftTopic ?? (topic !== undefined && hasLeft(ports, link, topic)),
  ]);
  return { tenantName, topic: topic ?? null, hasLeftAll, hasLeftTopic };
}

async function hasLeft(
  { registry }: UnsubscribeEndpointPorts,
  { tenantId, recipient }: UnsubscribeLink,
  topic: string | undefined,
): Promise<boolean> {
  try {
    return (await registry.suppressionReason(tenantId, suppressionName(recipient, topic))) === "unsubscribed";
  } catch (error) {
    if (isOutage(error)) return false;
    throw error;
  }
}
