import { hostname } from "node:os";
import { isLoopback, isOfWebPage, readHostHeader } from "../domain/texts/host.ts";
import { ApiError } from "./api-error.ts";
import { BearerToken } from "./bearer-token.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Callers that may read `/metrics`: holders of the token (`token`), programs on this machine although others reach the address
 * too (`this-machine`), or every caller that can reach the address, a loopback one (`everybody-here`) or any (`everybody`). The
 * last value means that the metrics are served elsewhere.
 */
export type MetricsReaders =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "this-machine" | "everybody-here" | "everybody" | "nobody" };

/** Headers by which a proxy shows that it forwards somebody else's request. */
const FORWARDING = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/**
 * Without a token, web pages are refused: by the browser's request headers, and by a `Host` that was made to resolve to this
 * machine (DNS rebinding). At an address that other machines reach, scrapers use any name, so only the headers are checked.
 */
export class MetricsGate {
  private readonly token: BearerToken | null;

  constructor(private readonly readers: MetricsReaders) {
    this.token = readers.kind === "token" ? new BearerToken(readers.token) : null;
  }

  /** Throws an `ApiError` if this caller may not read the metrics. `addressOf` finds the address a request came from. */
  require(exchange: Exchange, addressOf: (request: Request) => string | null): void {
    const { request } = exchange;
    switch (this.readers.kind) {
      case "everybody":
        return refuseWebPage(request);
      case "everybody-here":
        refuseWebPage(request);
        return requireOwnName(request);
      case "nobody":
        throw new ApiError(404, "there is nothing at this address");
      case "token":
        exchange.challenge = 'Bearer realm="waybill metrics"';
        if (this.token?.fits(request.headers.get("authorization")) === true) return;
        throw new ApiError(401, "the metrics token is missing or wrong: send it as Authorization: Bearer");
      case "this-machine":
        if (!isOfThisMachine(request, addressOf(request)))
          throw new ApiError(403, "metrics are for programs of this machine: set METRICS_TOKEN or METRICS_PORT");
        refuseWebPage(request);
        return requireOwnName(request);
    }
  }
}

/**
 * A proxy on this machine forwards requests of strangers, so it does not count. Null: there is no connection, so the caller is
 * this process.
 */
function isOfThisMachine(request: Request, address: string | null): boolean {
  if (FORWARDING.some((name) => request.headers.has(name))) return false;
  return address === null || isLoopback(address);
}

function refuseWebPage({ headers }: Request): void {
  if (isOfWebPage(headers)) throw new ApiError(403, "metrics are not for web pages: set METRICS_TOKEN");
}

/** A request without the header comes from no browser. */
function requireOwnName({ headers }: Request): void {
  const { host } = readHostHeader(headers.get("host") ?? "localhost");
  if (isLoopback(host) || host.toLowerCase() === hostname().toLowerCase()) return;
  throw new ApiError(
    403,
    "metrics are served to localhost, 127.0.0.1 and this machine's name alone: set METRICS_TOKEN",
  );
}
