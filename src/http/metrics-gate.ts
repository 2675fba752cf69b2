import { ApiError } from "../domain/errors.ts";
import { isLoopback } from "../domain/loopback.ts";
import { BearerToken } from "./bearer-token.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Who may read `/metrics`: whoever carries the token (`token`), programs of this machine (`this-machine`), or everybody
 * that reaches the address (`everybody`). Nobody: it is served elsewhere.
 */
export type MetricsReaders =
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "this-machine" | "everybody" | "nobody" };

/** Headers with which a proxy says that it speaks for somebody else. */
const FORWARDING = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

export class MetricsGate {
  private readonly token: BearerToken | null;

  constructor(private readonly readers: MetricsReaders) {
    this.token = readers.kind === "token" ? new BearerToken(readers.token) : null;
  }

  /** Throws an `ApiError` where the metrics are not for this caller. `addressOf`: where the request came from. */
  require(exchange: Exchange, addressOf: (request: Request) => string | null): void {
    const { request } = exchange;
    switch (this.readers.kind) {
      case "everybody":
        return;
      case "nobody":
        throw new ApiError(404, "there is nothing at this address");
      case "token":
        exchange.challenge = 'Bearer realm="waybill metrics"';
        if (this.token?.fits(request.headers.get("authorization")) === true) return;
        throw new ApiError(401, "the metrics token is missing or wrong: send it as Authorization: Bearer");
      case "this-machine":
        if (isOfThisMachine(request, addressOf(request))) return;
        throw new ApiError(403, "metrics are for programs of this machine: set METRICS_TOKEN or METRICS_PORT");
    }
  }
}

/** A proxy of this machine speaks for strangers. Null: there is no connection, and so nobody else. */
function isOfThisMachine(request: Request, address: string | null): boolean {
  if (FORWARDING.some((name) => request.headers.has(name))) return false;
  return address === null || isLoopback(address);
}
