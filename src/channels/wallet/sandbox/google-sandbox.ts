import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { MessageRing } from "../../../domain/channels/sandbox.ts";
import type { Clock } from "../../../domain/clock.ts";
import type { SandboxInbox } from "../../../domain/jobs/report.ts";
import { remember } from "../../../domain/remember.ts";
import type { Telemetry } from "../../../domain/telemetry.ts";
import { type JsonObject, parseJsonObject, parseWritten } from "../../../domain/texts/json.ts";
import { GoogleCallbackSigner } from "./google-callback-signer.ts";
import { SandboxCallbacks } from "./google-callbacks.ts";
import { aborted, failure, GoogleResources, type Reply } from "./google-resources.ts";
import { GoogleTokens } from "./google-tokens.ts";
import { listenOnLoopback } from "./listen-on-loopback.ts";

export interface GoogleSandboxOptions {
  readonly clock: Clock;
  /** Default: no log. */
  readonly telemetry?: Pick<Telemetry, "log">;
  /** Service accounts' public keys (PEM) by address, to verify their signatures. Default: none. */
  readonly keys?: ReadonlyMap<string, string>;
  /** Decides the result of each REST call, instead of the ids. */
  outcomeFor?(call: { readonly method: string; readonly path: string }): GoogleOutcome | null;
}

/** The result of a call. `lost`: it is executed and its response lost. */
export type GoogleOutcome = "denied" | "throttled" | "broken" | "aborted" | "lost";

export interface GoogleSandbox {
  /** `http://127.0.0.1:<port>/walletobjects/v1` */
  readonly apiUrl: string;
  /** `http://127.0.0.1:<port>/token` */
  readonly tokenUrl: string;
  /** `http://127.0.0.1:<port>/gp/m/issuer/keys` */
  readonly keysUrl: string;
  readonly inbox: SandboxInbox;
  readonly resources: GoogleResources;
  readonly tokens: GoogleTokens;
  readonly callbacks: SandboxCallbacks;
  readonly signer: GoogleCallbackSigner;
  /** Sets the service's address for callbacks; until then, they wait. */
  callBack(url: string): void;
  /** Drops every connection. Safe to repeat. */
  stop(): Promise<void>;
}

const OUTCOMES: readonly GoogleOutcome[] = ["denied", "throttled", "broken", "aborted", "lost"];
/** How often each temporary fault occurs before the call succeeds; `denied` is permanent. */
const TIMES: Readonly<Record<GoogleOutcome, number>> = {
  denied: Number.POSITIVE_INFINITY,
  throttled: 2,
  broken: 2,
  aborted: 2,
  lost: 1,
};
/** Objects whose faults are counted; the oldest is forgotten first. */
const MEETINGS_MAX = 10_000;
const BODY_BYTES_MAX = 2 * 1024 * 1024;
const MESSAGES_MAX = 1_000;
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Starts Google's wallet on a free loopback port: the REST API and the token endpoint. Object ids select the result:
 * `…-denied` is refused (403), `…-throttled` gets 429 twice, `…-broken` gets 500 twice, `…-aborted` gets 409 twice as
 * if another call changed it at the time, and the first change to `…-lost` is made but its response lost. `…-saved` is
 * saved once it exists, and `…-removed` is saved and removed.
 */
export async function startGoogleSandbox(options: GoogleSandboxOptions): Promise<GoogleSandbox> {
  const sandbox = new Sandbox(options);
  const origin = `http://127.0.0.1:${await sandbox.listen()}`;
  sandbox.tokenUrl = `${origin}/token`;
  const { inbox, resources, tokens, tokenUrl, callbacks, signer } = sandbox;
  return {
    apiUrl: `${origin}${BASE_PATH}`,
    tokenUrl,
    keysUrl: `${origin}${KEYS_PATH}`,
    inbox,
    resources,
    tokens,
    callbacks,
    signer,
    callBack: (url) => callbacks.callTo(url),
    stop: () => sandbox.stop(),
  };
}

const BASE_PATH = "/walletobjects/v1";
const KEYS_PATH = "/gp/m/issuer/keys";
const KEYS_SECONDS = 3_600;
/** Events after an object's creation, by the end of its id. */
const HOLDERS: Readonly<Record<string, readonly ("save" | "del")[]>> = {
  "-saved": ["save"],
  "-removed": ["save", "del"],
};

interface SandboxCall {
  readonly method: string;
  readonly kind: string;
  readonly id: string | null;
  readonly action: string | null;
  readonly account: string;
  /** The unparsed body. */
  readonly source: string;
}

/**
 * Invariants:
 * S1. All state is bounded: resources, messages, tokens and fault counts.
 * S2. After `stop`, no socket is open.
 */
class Sandbox {
  readonly inbox = new MessageRing(MESSAGES_MAX, MESSAGE_BYTES_MAX);
  readonly resources: GoogleResources;
  readonly tokens: GoogleTokens;
  readonly signer: GoogleCallbackSigner;
  readonly callbacks: SandboxCallbacks;
  tokenUrl = "";
  private readonly meetings = new Map<string, number>();
  private readonly server = createServer((request, response) => this.serve(request, response));
  private stopped: Promise<void> | null = null;

  constructor(private readonly options: GoogleSandboxOptions) {
    this.resources = new GoogleResources(options.clock);
    this.tokens = new GoogleTokens(options.clock, options.keys ?? new Map());
    this.signer = new GoogleCallbackSigner(options.clock);
    const { clock, telemetry = { log() {} } } = options;
    this.callbacks = new SandboxCallbacks({ resources: this.resources, signer: this.signer, clock, telemetry });
  }

  listen(): Promise<number> {
    return listenOnLoopback(this.server);
  }

  stop(): Promise<void> {
    this.stopped ??= (async () => {
      await this.callbacks.stop();
      await new Promise<void>((resolve) => {
        this.server.close(() => resolve());
        this.server.closeAllConnections();
      });
    })();
    return this.stopped;
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= BODY_BYTES_MAX) chunks.push(chunk);
    });
    request.on("error", () => response.destroy());
    request.on("end", () => {
      const reply =
        length > BODY_BYTES_MAX
          ? failure(413, "uploadTooLarge", "The request is too large")
          : this.answer(request, Buffer.concat(chunks).toString("utf8"));
      // Executed, but never answered.
      if (reply === null) request.socket.destroy();
      else send(response, reply);
    });
  }

  /** Returns the reply; null if the response is lost. */
  private answer({ method = "", url = "", headers }: IncomingMessage, source: string): Reply | null {
    const pathname = unescaped(url.replace(/\?.*/, ""));
    if (pathname === KEYS_PATH && method === "GET") {
      return { status: 200, body: this.signer.keys(), headers: { "cache-control": `public, max-age=${KEYS_SECONDS}` } };
    }
    if (pathname === "/token" && method === "POST") return this.tokens.grant(source, this.tokenUrl);
    const account = this.tokens.accountBehind(headers.authorization ?? "");
    if (account === null) return failure(401, "authError", "Invalid Credentials");
    const [kind = "", id = null, action = null, ...rest] = pathname.slice(BASE_PATH.length + 1).split("/");
    if (!pathname.startsWith(`${BASE_PATH}/`) || !this.resources.isKind(kind) || rest.length > 0) {
      return failure(404, "notFound", "Not Found");
    }
    const body = parseJsonObject(source, parseWritten);
    if (method !== "GET" && body === null) return failure(400, "parseError", "Parse Error");
    return this.decide({ method, kind, id, action, account, source }, body ?? {});
  }

  private decide(request: SandboxCall, body: JsonObject): Reply | null {
    const id = request.id ?? (typeof body["id"] === "string" ? body["id"] : "");
    switch (this.outcomeFor(request, id)) {
      case null:
        return this.carryOut(request, id, body);
      case "denied":
        return failure(403, "permissionDenied", "The caller does not have permission");
      case "throttled":
        return failure(429, "rateLimitExceeded", "Too many requests");
      case "broken":
        return failure(500, "backendError", "Internal error");
      case "aborted":
        return aborted();
      case "lost":
        this.carryOut(request, id, body);
        return null;
    }
  }

  private outcomeFor({ method, kind, action, id }: SandboxCall, ownId: string): GoogleOutcome | null {
    if (this.options.outcomeFor !== undefined) {
      return this.options.outcomeFor({ method, path: [kind, id, action].filter((part) => part !== null).join("/") });
    }
    if (method === "GET" || !kind.endsWith("Object")) return null;
    const outcome = OUTCOMES.find((each) => ownId.endsWith(`-${each}`));
    return outcome !== undefined && this.meets(outcome, ownId) ? outcome : null;
  }

  /** Counts this occurrence. Returns whether the fault still applies. */
  private meets(outcome: GoogleOutcome, id: string): boolean {
    const met = this.meetings.get(id) ?? 0;
    remember(this.meetings, { key: id, value: met + 1, max: MEETINGS_MAX });
    return met < TIMES[outcome];
  }

  private carryOut(request: SandboxCall, id: string, body: JsonObject): Reply {
    const reply = this.change(request, id, body);
    const isNew = request.method === "POST" && request.id === null && reply.status === 200;
    const [, events = null] = Object.entries(HOLDERS).find(([end]) => isNew && id.endsWith(end)) ?? [];
    if (events !== null && request.kind.endsWith("Object")) {
      this.callbacks.afterInsertion(request.kind, id, events);
    }
    if (request.method !== "GET" && reply.status === 200) this.show(request, id);
    return reply;
  }

  private change({ method, kind, id, action }: SandboxCall, bodyId: string, body: JsonObject): Reply {
    if (method === "POST" && id === null) return this.resources.insert(kind, body);
    if (method === "POST" && action === "addMessage") return this.resources.addMessage(kind, bodyId, body["message"]);
    if (id === null || action !== null) return failure(404, "notFound", "Not Found");
    if (method === "GET") return this.resources.get(kind, id);
    if (method === "PATCH") return this.resources.patch(kind, id, body);
    return failure(405, "httpMethodNotAllowed", "Method Not Allowed");
  }

  private show({ method, kind, account, source, action }: SandboxCall, to: string): void {
    const receivedAtMs = this.options.clock.nowMs();
    this.inbox.add({
      to,
      bytes: source.length,
      show: () => ({
        channel: "wallet",
        received_at: new Date(receivedAtMs).toISOString(),
        from: account,
        to,
        subject: [method, kind, action].filter((word) => word !== null).join(" "),
        source,
      }),
    });
  }
}

function send(response: ServerResponse, { status, body, headers }: Reply): void {
  const retryAfter = status === 429 ? { "retry-after": "1" } : {};
  response.writeHead(status, { "content-type": "application/json; charset=UTF-8", ...retryAfter, ...headers });
  response.end(JSON.stringify(body));
}

/** Ids contain no slash, so the whole path can be decoded at once. Empty if its percent-encoding is invalid. */
function unescaped(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    if (error instanceof URIError) return "";
    throw error;
  }
}
