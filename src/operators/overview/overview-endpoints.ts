import type { Clock } from "../../domain/clock.ts";
import type { ChannelName } from "../../domain/jobs/job.ts";
import { ApiError } from "../../http/api-error.ts";
import { type Endpoint, operatorEndpoint, reply } from "../../http/endpoint.ts";
import type { Exchange } from "../../http/exchange.ts";
import { failure } from "../../http/failures.ts";
import type { FrontDoor } from "../../http/front-door.ts";
import { LiveOverview } from "./live-overview.ts";
import type { Overview } from "./overview.ts";
import { OVERVIEW_EXAMPLE, overviewSchema } from "./schema.ts";

export interface OverviewEndpointPorts {
  readonly overview: Pick<Overview, "now">;
  readonly clock: Clock;
  readonly whenDraining?: AbortSignal;
}

const TOO_MANY_ERROR = "too many listen to the overview at this process: try again";
const TOO_MANY_LISTENERS = failure(
  "TooManyListeners",
  "As many listen as this process serves, or it is stopping.",
  TOO_MANY_ERROR,
  { headers: ["Retry-After"] },
);
const RETRY_SECONDS = 5;
/** Idle time of a connection that has listened. */
const IDLE_SECONDS = 60;
const HEADERS = { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" };

/** The state of the whole service, once and live. */
export function overviewEndpoints(ports: OverviewEndpointPorts, channels: readonly ChannelName[]): readonly Endpoint[] {
  const { overview, clock, whenDraining } = ports;
  const live = new LiveOverview({ overview, clock, whenDraining });
  return [
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/overview",
      name: "operator",
      operation: "getOverview",
      tag: "Operators",
      summary: "How the whole service is",
      description:
        "At most two seconds old (rates seven, and counts of the registry half a minute), and answered within two seconds: what a store does not say in time is null or left out, " +
        "and `alarms` says why.",
      answers: {
        200: { description: "The overview.", schema: overviewSchema(channels), examples: [OVERVIEW_EXAMPLE] },
      },
      handle: async () => reply(200, await overview.now()),
    }),
    operatorEndpoint({
      method: "GET",
      path: "/dash/api/overview/live",
      name: "operator",
      operation: "followOverview",
      tag: "Operators",
      summary: "The overview, as it changes",
      description:
        "Server-sent events: each has the overview as its data. One comes at once, and then one every two seconds while the " +
        "overview changes; a comment every 15 seconds shows that the connection lives.",
      answers: {
        200: {
          description: "Events, until the caller leaves.",
          schema: null,
          mediaType: "text/event-stream",
          headers: { "X-Accel-Buffering": "`no`: proxies are not to hold events back." },
        },
      },
      fails: { 503: TOO_MANY_LISTENERS },
      async handle({ door, exchange }) {
        const { request } = exchange;
        const stream = await live.listen({
          isAdmitted: () => isAdmitted(door, exchange),
          onEnd: () => door.callers.mayStaySilent(request, IDLE_SECONDS),
        });
        if (stream === null) throw new ApiError(503, TOO_MANY_ERROR, {}, RETRY_SECONDS);
        // Bun counts a connection as silent even while it sends.
        door.callers.mayStaySilent(request, 0);
        return exchange.body(200, stream, HEADERS);
      },
    }),
  ];
}

/** Whether the operator would still be admitted. */
function isAdmitted(door: FrontDoor, exchange: Exchange): boolean {
  try {
    door.requireOperator(exchange);
    return true;
  } catch {
    return false;
  }
}
