import { type IncomingMessage, request as requestHttp } from "node:http";
import { type RequestOptions, request as requestHttps } from "node:https";
import { isIP } from "node:net";
import type {
  OutboundGuard,
  WebhookAnswer,
  WebhookCall,
  WebhookCaller,
  WebhookCalls,
} from "../domain/texts/outbound.ts";
import { parseWebhookUrl, type WebhookUrl, webhookRefusal } from "../domain/texts/webhook-url.ts";

export interface WebhookClientOptions {
  readonly guard: OutboundGuard;
  /** Further certificates to trust, PEM. By default those that the runtime trusts. */
  readonly ca?: string;
}

/**
 * Calls tenants' URLs without exposing this machine's network to them: the name is looked up once, the connection goes
 * to the very address that was checked, its certificate must match the name, redirects and the environment's proxies
 * are ignored, connections are not shared, and only the head of the answer is read, with the first bytes of a refusal's
 * body.
 *
 * `fetch` is unsuitable: the runtime's uses the environment's proxies.
 */
export class WebhookClient implements WebhookCaller, WebhookCalls {
  constructor(private readonly options: WebhookClientOptions) {}

  async post(url: string, json: string, signal: AbortSignal): Promise<string | null> {
    const answer = await this.call({ url, json }, signal);
    if (answer.kind === "failed") return answer.why;
    return answer.status >= 200 && answer.status < 300 ? null : `the receiver answered ${answer.status}`;
  }

  async call(call: WebhookCall, signal: AbortSignal): Promise<WebhookAnswer> {
    const target = parseWebhookUrl(call.url);
    if ("why" in target) return failed(`the address ${target.why}`);
    const { promise: aborted, resolve: abort } = Promise.withResolvers<WebhookAnswer>();
    const onAbort = () => abort(LATE);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([this.guarded(target, call, signal), aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  private async guarded(target: WebhookUrl, call: WebhookCall, signal: AbortSignal): Promise<WebhookAnswer> {
    const route = await this.options.guard.routeTo(target.host);
    const refusal = webhookRefusal(target, route);
    if (refusal !== null || route.kind !== "allowed") return failed(`the address ${refusal ?? "is refused"}`);
    return signal.aborted ? LATE : this.sendRequest(target, { ...call, address: route.address }, signal);
  }

  private sendRequest(
    { secure, host, port, authority, path }: WebhookUrl,
    { address, json, headers }: WebhookCall & { readonly address: string },
    signal: AbortSignal,
  ): Promise<WebhookAnswer> {
    const { ca } = this.options;
    const body = Buffer.from(json, "utf8");
    const options: RequestOptions = {
      method: "POST",
      host: address,
      port,
      path,
      agent: false,
      headers: {
        host: authority,
        "content-type": "application/json",
        "content-length": body.length,
        "user-agent": "Waybill",
        connection: "close",
        ...headers,
      },
      // RFC 6066, 3: an IP address is not a server name.
      ...(secure && isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca }),
    };
    return new Promise((resolve) => {
      const call = (secure ? requestHttps : requestHttp)(options);
      const end = () => call.destroy();
      // Each of these answers costs an iteration of the event loop, and no other code counts them.
      let told = 0;
      call.on("information", () => {
        told += 1;
        if (told <= INFORMATION_MAX) return;
        resolve(failed("it announced an answer (1xx) again and again, and gave none"));
        end();
      });
      // Stays attached: an error after the answer is ignored.
      call.on("error", (error) => resolve(failed(describeCause(error))));
      call.on("response", (response) => {
        response.on("error", () => undefined);
        const retryAfter = response.headers["retry-after"] ?? null;
        const { statusCode: status = 0 } = response;
        const answer = (text?: string) => {
          resolve({ kind: "answered", status, retryAfter, ...(text !== undefined && { text }) });
          end();
        };
        if (status >= 200 && status < 300) answer();
        else void readBeginning(response).then(answer);
      });
      call.on("close", () => {
        signal.removeEventListener("abort", end);
        resolve(failed("the connection was closed without an answer"));
      });
      signal.addEventListener("abort", end, { once: true });
      call.end(body);
    });
  }
}

const TEXT_BYTES_MAX = 512;
const TEXT_MS_MAX = 1_000;

/**
 * Returns the beginning of a body as far as it has arrived by the time limit, so that a silent or slow receiver costs
 * no more than that.
 */
function readBeginning(response: IncomingMessage): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const timer = setTimeout(resolve, TEXT_MS_MAX);
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= TEXT_BYTES_MAX || chunks.length >= TEXT_BYTES_MAX) resolve();
  });
  for (const end of ["end", "close", "error"]) response.on(end, () => resolve());
  return promise.then(() => {
    clearTimeout(timer);
    // Bytes that are not text, and a character that the bound cuts, become replacement characters.
    return Buffer.concat(chunks).subarray(0, TEXT_BYTES_MAX).toString("utf8").replaceAll("\0", "");
  });
}

/** Interim answers (1xx) that are accepted. A receiver needs one or two. */
const INFORMATION_MAX = 16;

function failed(why: string): WebhookAnswer {
  return { kind: "failed", why };
}

const LATE = failed("there was no answer in time");

/** Returns the runtime's code, without any text of the receiver. */
function describeCause(error: Error): string {
  const code: unknown = Reflect.get(error, "code");
  return `the call failed${typeof code === "string" ? ` (${code.slice(0, 60)})` : ""}`;
}
