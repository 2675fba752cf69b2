import { FirstTries, MessageRing } from "../../../domain/channels/sandbox.ts";
import type { SandboxInbox } from "../../../domain/jobs/report.ts";
import type { RuntimePorts } from "../../../domain/runtime-ports.ts";
import { isJsonObject, type JsonObject } from "../../../domain/texts/json.ts";
import type { GraphRefusal } from "./graph-refusal.ts";
import { type MessageRequest, readMessageRequest } from "./graph-request.ts";
import { type MessageStatus, StatusCallbacks } from "./status-callbacks.ts";
import { SANDBOX_TEMPLATES, templatePage } from "./template-page.ts";

export interface GraphSandboxOptions extends RuntimePorts {
  /** Signs the callbacks. */
  readonly webhookSecret: string;
  /**
   * How statuses arrive: shuffled, each twice, or the first ones before the message's own reply. Default: none of
   * these.
   */
  readonly shuffled?: boolean;
  readonly doubled?: boolean;
  readonly early?: boolean;
  /**
   * The templates that `GET /{account}/message_templates` lists for every account, in the API's form. Default:
   * `hello_world`.
   */
  readonly templates?: readonly JsonObject[];
  /** Called for each message: returns whether its phone number is over its throughput, or fails. Default: never. */
  findTrouble?(phoneNumberId: string): NumberTrouble | null;
}

export type NumberTrouble = "throttled" | "failing";

export interface GraphSandbox {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly inbox: SandboxInbox;
  /** Sets the address of the API that receives statuses. Statuses wait until it is known. */
  callBack(apiUrl: string): void;
  /** Waits for the callback in flight and drops all others. Safe to call twice. */
  stop(): Promise<void>;
}

/** Selects what happens to a message by the last four digits of its recipient's number or id. */
type SandboxOutcome = "read" | "undeliverable" | "throttled" | "broken" | "failed" | "window_closed";

const OUTCOMES: Readonly<Record<string, SandboxOutcome>> = {
  "0001": "undeliverable",
  "0002": "throttled",
  "0003": "broken",
  "0004": "failed",
  "0005": "window_closed",
};

const STATUSES: Readonly<Record<"read" | "failed", readonly MessageStatus["status"][]>> = {
  read: ["sent", "delivered", "read"],
  failed: ["failed"],
};

const MESSAGES_MAX = 1_000;
const BYTES_MAX = 16 * 1024 * 1024;
const REQUEST_BYTES_MAX = 1024 * 1024;
/** How often a message is throttled or fails before it is accepted. */
const REFUSALS = 2;
/** Messages whose refusals are counted at once; the oldest is forgotten first. */
const REFUSED_MAX = 10_000;

/** Starts a Graph API on a free loopback port that accepts messages without sending them. */
export function startGraphSandbox(options: GraphSandboxOptions): GraphSandbox {
  const sandbox = new Sandbox(options);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: REQUEST_BYTES_MAX,
    fetch: (request) => sandbox.answer(request),
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    inbox: sandbox.inbox,
    callBack: (apiUrl) => sandbox.callbacks.callTo(`${apiUrl}/webhook/whatsapp`),
    stop: async () => {
      await sandbox.callbacks.stop();
      await server.stop(true);
    },
  };
}

/**
 * The server's state.
 *
 * G1. Only accepted messages are stored and reported by callbacks.
 * G2. All state is bounded.
 */
class Sandbox {
  readonly inbox = new MessageRing(MESSAGES_MAX, BYTES_MAX);
  readonly callbacks: StatusCallbacks;
  private readonly refusals = new FirstTries(REFUSED_MAX);

  constructor(private readonly options: GraphSandboxOptions) {
    const { webhookSecret: secret, shuffled = false, doubled = false, clock, random, telemetry } = options;
    this.callbacks = new StatusCallbacks({ secret, shuffled, doubled, clock, random, telemetry });
  }

  async answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (request.method === "GET" && TEMPLATES.test(url.pathname)) return this.list(request, url);
    const body = await request.text();
    const phoneNumberId = /^\/v\d{1,3}\.\d\/(\d{1,32})\/messages$/.exec(url.pathname)?.[1];
    const refusal = request.method === "POST" && phoneNumberId !== undefined ? tokenRefusal(request) : UNSUPPORTED;
    if (refusal !== null || phoneNumberId === undefined) return refused(refusal ?? UNSUPPORTED);
    const message = readMessageRequest(body);
    if ("code" in message) return refused(message);
    return this.deliver(message, phoneNumberId, body);
  }

  private list(request: Request, url: URL): Response {
    const refusal = tokenRefusal(request);
    return refusal === null
      ? Response.json(templatePage(this.options.templates ?? SANDBOX_TEMPLATES, url))
      : refused(refusal);
  }

  private async deliver(message: MessageRequest, phoneNumberId: string, body: string): Promise<Response> {
    const outcome = outcomeFor(message.to);
    const trouble = this.options.findTrouble?.(phoneNumberId) ?? null;
    if (trouble !== null) return refused(trouble === "throttled" ? THROTTLED : FAILING);
    if (outcome === "undeliverable") return refused(UNDELIVERABLE);
    if (outcome === "window_closed" && message.template === null) return refused(WINDOW_CLOSED);
    if (outcome === "throttled" && this.isRefused(message)) return refused(THROTTLED);
    if (outcome === "broken" && this.isRefused(message)) return refused(BROKEN);
    return await this.accept(message, { outcome, phoneNumberId, body });
  }

  private async accept({ to, opaque }: MessageRequest, { outcome, phoneNumberId, body }: Arrival): Promise<Response> {
    const { random, early = false } = this.options;
    this.keep(phoneNumberId, to, body);
    const messageId = `wamid.${Buffer.from(random.fill(new Uint8Array(30))).toString("base64")}`;
    const names = STATUSES[outcome === "failed" ? "failed" : "read"];
    const statuses = names.map((status) => ({ phoneNumberId, messageId, status, to, opaque }));
    if (early) await this.callbacks.sayNow(statuses.slice(0, 1));
    this.callbacks.add(early ? statuses.slice(1) : statuses);
    return Response.json({
      messaging_product: "whatsapp",
      contacts: [isNumber(to) ? { input: to, wa_id: to } : { input: to, user_id: to }],
      messages: [{ id: messageId, message_status: "accepted" }],
    });
  }

  private keep(from: string, to: string, source: string): void {
    const received_at = new Date(this.options.clock.nowMs()).toISOString();
    const show = () =>
      ({ channel: "whatsapp", received_at, from, to, subject: describeRequest(source), source }) as const;
    this.inbox.add({ to, bytes: source.length, show });
  }

  /** Counts this try. Retries of a message share its opaque data, which identifies it. */
  private isRefused({ to, template, opaque }: MessageRequest): boolean {
    const key = opaque ?? JSON.stringify([to, template]);
    return this.refusals.take(key, REFUSALS);
  }
}

const TEMPLATES = /^\/v\d{1,3}\.\d\/\d{1,32}\/message_templates$/;

interface Arrival {
  readonly outcome: SandboxOutcome;
  readonly phoneNumberId: string;
  readonly body: string;
}

function isNumber(to: string): boolean {
  return /^\d+$/.test(to);
}

function outcomeFor(to: string): SandboxOutcome {
  const digits = to.slice(-4);
  return Object.hasOwn(OUTCOMES, digits) ? (OUTCOMES[digits] ?? "read") : "read";
}

/** Accepts any token except those that ask for refusal: a token that begins with `expired` has expired. */
function tokenRefusal(request: Request): GraphRefusal | null {
  const token = /^Bearer (\S+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
  const type = "OAuthException";
  if (token === undefined) {
    return { status: 401, code: 190, type, message: "Invalid OAuth access token - Cannot parse access token" };
  }
  if (!token.startsWith("expired")) return null;
  return { status: 401, code: 190, subcode: 463, type, message: "Error validating access token: Session has expired" };
}

/** HTTP 400, not 404: the provider does not distinguish missing from forbidden. */
const UNSUPPORTED: GraphRefusal = {
  status: 400,
  code: 100,
  subcode: 33,
  type: "GraphMethodException",
  message: "Unsupported request. The object does not exist, or does not support this operation",
};
const UNDELIVERABLE: GraphRefusal = {
  status: 400,
  code: 131026,
  message: "Message undeliverable",
  details: "Message Undeliverable.",
};
/** Applies only to messages without a template. */
const WINDOW_CLOSED: GraphRefusal = {
  status: 400,
  code: 131047,
  message: "Re-engagement message",
  details:
    "Message failed to send because more than 24 hours have passed since the customer last replied to this number.",
};
const THROTTLED: GraphRefusal = {
  status: 429,
  code: 130429,
  message: "Rate limit hit",
  details:
    "Message failed to send because there were too many messages sent from this phone number in a short period of time",
};
const BROKEN: GraphRefusal = {
  status: 500,
  code: 131000,
  message: "Something went wrong",
  details: "Message failed to send due to an unknown error.",
};
/** Concerns one number: messages of other numbers are still accepted. */
const FAILING: GraphRefusal = {
  status: 503,
  code: 131016,
  message: "Service unavailable",
  details: "A service is temporarily unavailable.",
};

function refused({ status, code, subcode, message, details, type = "OAuthException" }: GraphRefusal): Response {
  const error = {
    message: code === 190 ? message : `(#${code}) ${message}`,
    type,
    code,
    ...(subcode === undefined ? {} : { error_subcode: subcode }),
    ...(details === undefined ? {} : { error_data: { messaging_product: "whatsapp", details } }),
    fbtrace_id: "Sandbox",
  };
  return Response.json({ error }, { status });
}

/** Describes a stored request by its template and language, the beginning of its text, or else its type. */
function describeRequest(source: string): string {
  const request: unknown = JSON.parse(source);
  const { type, template, text, interactive }: JsonObject = isJsonObject(request) ? request : {};
  const body = isJsonObject(interactive) ? interactive["body"] : undefined;
  const words = isJsonObject(text) ? text["body"] : isJsonObject(body) ? body["text"] : undefined;
  if (typeof words === "string") return words.slice(0, SUBJECT_CHARS_MAX).toWellFormed();
  if (!isJsonObject(template)) return String(type);
  const language: JsonObject = isJsonObject(template["language"]) ? template["language"] : {};
  return `${String(template["name"])} (${String(language["code"])})`;
}

const SUBJECT_CHARS_MAX = 80;
