import { Elysia } from "elysia";
import { sleep } from "../core/clock.ts";
import { httpOrigin } from "../core/http-origin.ts";
import { limits } from "../core/limits.ts";
import type { ApiPorts } from "./api-ports.ts";
import type { CallerAddresses } from "./caller-addresses.ts";
import { aliasRoutes } from "./dash/aliases.ts";
import { credentialRoutes } from "./dash/credentials.ts";
import { operatorDomainRoutes } from "./dash/domains.ts";
import { EXPORT_PATH, exportRoutes } from "./dash/export.ts";
import { incomingMessageRoutes } from "./dash/incoming-messages.ts";
import { keyRoutes } from "./dash/keys.ts";
import { mailReportRoutes } from "./dash/mail-reports.ts";
import { planRoutes } from "./dash/plans.ts";
import { sandboxRoutes } from "./dash/sandbox.ts";
import { suppressionRoutes } from "./dash/suppressions.ts";
import { templateRoutes } from "./dash/templates.ts";
import { tenantRoutes } from "./dash/tenants.ts";
import { tokenRoutes } from "./dash/tokens.ts";
import { walletCredentialRoutes } from "./dash/wallet-credentials.ts";
import { walletWebhookRoutes } from "./dash/wallet-webhook.ts";
import { whatsappCredentialRoutes } from "./dash/whatsapp-credentials.ts";
import { dashboardRoutes } from "./dashboard.ts";
import { docsRoutes } from "./docs.ts";
import { domainRoutes } from "./domains.ts";
import { eventRoutes } from "./events.ts";
import { FrontDoor } from "./front-door.ts";
import { googleClassRoutes } from "./google-classes.ts";
import { jobRoutes } from "./jobs.ts";
import { passRoutes } from "./passes.ts";
import { passKitRoutes } from "./public/pass-kit.ts";
import { trackingRoutes } from "./public/tracking.ts";
import { unsubscribeRoutes } from "./public/unsubscribe.ts";
import { whatsappWebhookRoutes } from "./public/whatsapp-webhook.ts";
import { sendEmailRoutes } from "./send-email.ts";
import { sendWalletRoutes } from "./send-wallet.ts";
import { sendWhatsappRoutes } from "./send-whatsapp.ts";
import { serviceRoutes } from "./service.ts";
import { type KnownRoute, Unrouted } from "./unrouted.ts";

export interface Server {
  /** Answers a request without a socket. */
  handle(request: Request): Promise<Response>;
  /** Takes requests at `port` (0: a free one). Once only. Rejects when the address cannot be had. */
  listen(at: ListenAt): Promise<{ readonly url: string; readonly port: number }>;
  /** Takes no new connection, answers what is in flight, then closes the rest. Safe to repeat. */
  stop(): Promise<void>;
  /** Every route that it answers. */
  readonly routes: readonly KnownRoute[];
}

export interface ListenAt {
  readonly host: string;
  readonly port: number;
  /** Other processes of this user take requests at the same port: the kernel spreads connections over them. */
  readonly isShared?: boolean;
}

/** The HTTP side of Waybill. Starts nothing. */
export function createServer(ports: ApiPorts): Server {
  const door = new FrontDoor(ports);
  // Elysia routes and nothing else: no lifecycle hook stands in the hot path, every handler gives a finished Response.
  // Without `standardHostname: false` it takes a host name of three letters for part of the path.
  const app = new Elysia({ strictPath: true, handler: { standardHostname: false } });
  for (const addTo of ROUTE_GROUPS) addTo(app, door);
  const routes = app.routes.map(({ method, path }) => ({ method, path }));
  const answer = async (request: Request) => app.fetch(request);
  const unrouted = new Unrouted(door, routes, answer);
  app.onError(({ request, code, error }) => {
    if (code === "NOT_FOUND") return unrouted.answer(request);
    return door.serve("broken", request, () => {
      throw error;
    });
  });
  const listener = new Listener(ports, door.callers, answer);
  return { handle: answer, listen: (at) => listener.listen(at), stop: () => listener.stop(), routes };
}

const ROUTE_GROUPS: readonly ((app: Elysia, door: FrontDoor) => void)[] = [
  sendEmailRoutes,
  sendWhatsappRoutes,
  sendWalletRoutes,
  passRoutes,
  googleClassRoutes,
  jobRoutes,
  eventRoutes,
  domainRoutes,
  trackingRoutes,
  unsubscribeRoutes,
  passKitRoutes,
  whatsappWebhookRoutes,
  serviceRoutes,
  docsRoutes,
  dashboardRoutes,
  tenantRoutes,
  keyRoutes,
  credentialRoutes,
  whatsappCredentialRoutes,
  walletCredentialRoutes,
  walletWebhookRoutes,
  aliasRoutes,
  incomingMessageRoutes,
  operatorDomainRoutes,
  templateRoutes,
  tokenRoutes,
  suppressionRoutes,
  planRoutes,
  sandboxRoutes,
  mailReportRoutes,
  exportRoutes,
];

/** The socket in front of the routes. */
class Listener {
  private server: Bun.Server<undefined> | null = null;
  private stopped: Promise<void> | null = null;
  /** Requests that have no answer yet. */
  private unanswered = 0;
  private onAnswered: (() => void) | null = null;

  constructor(
    private readonly ports: ApiPorts,
    private readonly callers: CallerAddresses,
    private readonly answer: (request: Request) => Promise<Response>,
  ) {}

  async listen(at: ListenAt): Promise<{ url: string; port: number }> {
    const server = Bun.serve({
      hostname: at.host,
      port: at.port,
      fetch: (request, listening) => {
        // Nothing is sent while its file is being written.
        if (request.url.includes(EXPORT_PATH)) listening.timeout(request, EXPORT_IDLE_SECONDS);
        return this.answerCounted(request);
      },
      // Bun answers its own 413 without a body and closes the connection; the routes keep the limit themselves.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // Said aloud, because without it a port that another process has is shared in silence.
      reusePort: at.isShared === true,
      development: false,
      error: (error) => this.lastResort(error),
    });
    this.server = server;
    this.callers.listensOn(server);
    const port = server.port ?? at.port;
    return { url: httpOrigin(at.host, port), port };
  }

  stop(): Promise<void> {
    this.stopped ??= this.drain();
    return this.stopped;
  }

  private async drain(): Promise<void> {
    if (this.server === null) return;
    const drained = new AbortController();
    const late = sleep(this.ports.clock, limits.drainMs, drained.signal);
    // Bun waits for every connection in use, also for one whose caller never finishes a body that was refused.
    await Promise.race([this.server.stop(false), this.allAnswered(drained.signal), late]);
    drained.abort();
    await this.server.stop(true);
  }

  private async answerCounted(request: Request): Promise<Response> {
    this.unanswered += 1;
    try {
      return await this.answer(request);
    } finally {
      this.unanswered -= 1;
      if (this.unanswered === 0) this.onAnswered?.();
    }
  }

  /** Resolves when no request is without an answer, and the last answers had time to leave. */
  private async allAnswered(signal: AbortSignal): Promise<void> {
    while (this.unanswered > 0) await new Promise<void>((resolve) => (this.onAnswered = resolve));
    await sleep(this.ports.clock, LAST_ANSWERS_MS, signal);
    if (this.unanswered > 0) await this.allAnswered(signal);
  }

  /** For what the routes cannot answer for, which would be a mistake of ours. */
  private lastResort(error: Error): Response {
    const requestId = this.ports.jobIds.next();
    this.ports.telemetry.log("error", "a request broke the server", {
      request_id: requestId,
      error: error.stack ?? error.message,
    });
    const headers = {
      "content-type": "application/json",
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
    };
    return new Response('{"error":"internal error"}', { status: 500, headers });
  }
}

const IDLE_TIMEOUT_SECONDS = 60;
/** Beyond the deadline of the file; 255 is the most that the socket takes. */
const EXPORT_IDLE_SECONDS = limits.exportFileMsMax / 1000 + 10;
const LAST_ANSWERS_MS = 250;
