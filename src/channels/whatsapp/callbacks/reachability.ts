import { connect } from "node:net";
import type { Clock } from "../../../domain/clock.ts";
import { limits } from "../../../domain/limits.ts";
import { toSocketAddress } from "../../../domain/texts/host.ts";

/** An answer proves that the service is reachable for this long. */
const PROOF_MS = 30_000;
const PROXIES = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"] as const;

/**
 * Checks whether a service can be reached. A request that gets no connection, because packets are dropped or a name
 * server is silent, times out like one whose answer is lost, and the runtime does not distinguish them. But the first
 * was never sent, so it is safe to repeat, and a message must not fail for it. If the service has not answered for a
 * while, a separate connection is therefore opened first.
 */
export class Reachability {
  private answeredMs = Number.NEGATIVE_INFINITY;
  private asking: Promise<boolean> | null = null;

  constructor(
    private readonly service: URL,
    private readonly clock: Clock,
  ) {}

  /** Records an answer of the service. */
  answered(): void {
    this.answeredMs = this.clock.monotonicMs();
  }

  /**
   * Resolves to false after 10 s at the latest, and to true once `signal` has aborted; several callers wait for one connection. Never
   * rejects.
   */
  isReached(signal: AbortSignal): boolean | Promise<boolean> {
    if (this.clock.monotonicMs() - this.answeredMs < PROOF_MS || isProxied()) return true;
    this.asking ??= this.ask();
    const aborted = new Promise<true>((resolve) => {
      signal.addEventListener("abort", () => resolve(true), { once: true });
    });
    return Promise.race([this.asking, aborted]);
  }

  private async ask(): Promise<boolean> {
    const isReached = await this.connects();
    this.asking = null;
    if (isReached) this.answered();
    return isReached;
  }

  private connects(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(toSocketAddress(this.service));
      const late = this.clock.setTimer(limits.chatConnectMs, () => end(false));
      const end = (isReached: boolean) => {
        late.cancel();
        socket.destroy();
        resolve(isReached);
      };
      socket.once("connect", () => end(true));
      socket.on("error", () => end(false));
    });
  }
}

/**
 * Whether requests use a proxy: this process may then have no direct connection to any host, though its requests
 * succeed.
 */
function isProxied(): boolean {
  return PROXIES.some((name) => (process.env[name] ?? "") !== "");
}
