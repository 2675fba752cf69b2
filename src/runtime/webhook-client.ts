import { request as requestHttp } from "node:http";
import { type RequestOptions, request as requestHttps } from "node:https";
import { isIP } from "node:net";
import type { OutboundGuard, WebhookCaller } from "../domain/outbound.ts";
import { parseWebhookUrl, type WebhookUrl, webhookRefusal } from "../domain/webhook-url.ts";

export interface WebhookClientOptions {
  readonly guard: OutboundGuard;
  /** Further certificates to trust, PEM. By default those that the runtime trusts. */
  readonly ca?: string;
}

/**
 * Calls tenants' addresses without lending them this machine's place in the network: the name is looked up once, the
 * connection goes to the very address that was checked, its certificate must match the name, redirects and the
 * environment's proxies are ignored, no connection is shared, and only the status of the answer is read.
 *
 * `fetch` would not do: the runtime's honours the environment's proxies.
 */
export class WebhookClient implements WebhookCaller {
  constructor(private readonly options: WebhookClientOptions) {}

  async post(url: string, json: string, signal: AbortSignal): Promise<string | null> {
    const target = parseWebhookUrl(url);
    if ("why" in target) return `the address ${target.why}`;
    const { promise: aborted, resolve: abort } = Promise.withResolvers<string>();
    const onAbort = () => abort("there was no answer in time");
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([this.call(target, json, signal), aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  private async call(target: WebhookUrl, json: string, signal: AbortSignal): Promise<string | null> {
    const route = await this.options.guard.routeTo(target.host);
    const refusal = webhookRefusal(target, route);
    if (refusal !== null || route.kind !== "allowed") return `the address ${refusal ?? "is refused"}`;
    if (signal.aborted) return "there was no answer in time";
    const status = await this.statusOf(target, route.address, json, signal);
    if (typeof status === "string") return status;
    return status >= 200 && status < 300 ? null : `the receiver answered ${status}`;
  }

  private statusOf(
    { secure, host, port, authority, path }: WebhookUrl,
    address: string,
    json: string,
    signal: AbortSignal,
  ): Promise<number | string> {
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
      },
      // RFC 6066, 3: an IP address is no server name.
      ...(secure && isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca }),
    };
    return new Promise((resolve) => {
      const call = (secure ? requestHttps : requestHttp)(options);
      const end = () => call.destroy();
      // Stays attached: an error after the answer concerns nobody.
      call.on("error", (error) => resolve(causeOf(error)));
      call.on("response", (response) => {
        response.on("error", () => undefined);
        resolve(response.statusCode ?? 0);
        end();
      });
      call.on("close", () => {
        signal.removeEventListener("abort", end);
        resolve("the connection was closed without an answer");
      });
      signal.addEventListener("abort", end, { once: true });
      call.end(body);
    });
  }
}

/** Returns the runtime's code, and nothing that the receiver wrote. */
function causeOf(error: Error): string {
  const code: unknown = Reflect.get(error, "code");
  return `the call failed${typeof code === "string" ? ` (${code.slice(0, 60)})` : ""}`;
}
