import type { OutboundGuard, OutboundRoute } from "../../../domain/texts/outbound.ts";
import { CALLED_OFF, type SmtpFailure, toSmtpFailure } from "./smtp-replies.ts";
import { SmtpError } from "./smtp-session.ts";

/** Chooses the address to connect to for a mail server. The guard checks a tenant's server anew for each connection. */
export class RelayRoute {
  /** Failed connections: each one moves on to the host's next address. */
  private failures = 0;

  constructor(
    private readonly host: string,
    /** Null for the platform's own server, which may have any address. */
    private readonly guard: OutboundGuard | null,
    private readonly timeoutMs: number,
  ) {}

  /** Returns the exact address to connect to; without a guard, the host itself. Rejects with `SmtpError`. */
  async address(signal: AbortSignal): Promise<string> {
    if (this.guard === null) return this.host;
    if (signal.aborted) throw new SmtpError(toSmtpFailure(CALLED_OFF, "session"));
    const over = Promise.withResolvers<SmtpFailure>();
    const onAbort = () => over.resolve(toSmtpFailure(CALLED_OFF, "session"));
    const timer = setTimeout(() => over.resolve(toSmtpFailure({ code: "ETIMEDOUT" }, "session")), this.timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const route = await Promise.race([this.guard.routeTo(this.host), over.promise]);
      if ("stage" in route) throw new SmtpError(route);
      return this.chosen(route);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Records that no usable connection could be made to the last address returned. */
  failed(): void {
    this.failures += 1;
  }

  private chosen(route: OutboundRoute): string {
    switch (route.kind) {
      case "allowed":
        return route.addresses[this.failures % route.addresses.length] ?? route.address;
      case "refused":
        throw new SmtpError(toSmtpFailure({ code: route.cause === "forbidden" ? "EFORBIDDEN" : "EDNS" }, "session"));
      case "unanswered":
        throw new SmtpError(toSmtpFailure({ code: "EDNS" }, "session"));
    }
  }
}
