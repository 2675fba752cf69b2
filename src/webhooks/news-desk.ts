import type { Clock } from "../domain/clock.ts";
import { UnavailableError } from "../domain/errors.ts";
import { FairTurns } from "../domain/fair-turns.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { ChangeFeed } from "../domain/tenants/tenant.ts";
import type { TenantNews, TenantNewsDesk } from "../domain/tenants/tenant-news.ts";
import { webhookLimits } from "./limits.ts";
import type { NewsRepository } from "./news-repository.ts";

export interface NewsDeskPorts {
  readonly store: Pick<NewsRepository, "add" | "isAskedFor">;
  readonly changes: Pick<ChangeFeed, "announce">;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

interface Waiting {
  readonly news: readonly TenantNews[];
  resolve(): void;
  reject(error: unknown): void;
}

interface Line {
  readonly waiting: Waiting[];
  /** The number of waiting news items. */
  length: number;
}

/**
 * Stores tenants' news for their webhooks. Each tenant has one transaction in flight; news that arrives meanwhile shares the
 * next one. A flood to one tenant costs one transaction at a time, and other tenants take their turns.
 */
export class NewsDesk implements TenantNewsDesk {
  private readonly lines = new Map<string, Line>();
  private readonly unannounced = new Set<string>();
  private readonly turns = new FairTurns({ all: webhookLimits.newsWritesMax, each: 1 });

  constructor(private readonly ports: NewsDeskPorts) {}

  async tell(news: readonly TenantNews[]): Promise<void> {
    const ofTenants = Map.groupBy(news, ({ tenantId }) => tenantId);
    const told = await Promise.allSettled(Array.from(ofTenants, ([tenantId, its]) => this.enter(tenantId, its)));
    // All writes have ended before the caller learns of a failure.
    for (const one of told) if (one.status === "rejected") throw one.reason;
  }

  isAskedFor(news: Pick<TenantNews, "tenantId" | "type" | "channel">): Promise<boolean> {
    return this.ports.store.isAskedFor(news);
  }

  private enter(tenantId: string, news: readonly TenantNews[]): Promise<void> {
    const line = this.lines.get(tenantId) ?? { waiting: [], length: 0 };
    // The items of one call are accepted however many they are: a repeat would have as many.
    if (line.length > 0 && line.length + news.length > webhookLimits.newsWaitingMax) {
      this.ports.telemetry.count("webhook_news", { result: "refused" }, news.length);
      return Promise.reject(new UnavailableError("too much news of one tenant waits to be stored"));
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    line.waiting.push({ news, resolve, reject });
    line.length += news.length;
    if (!this.lines.has(tenantId)) {
      this.lines.set(tenantId, line);
      this.turns.enter(tenantId, () => this.write(tenantId, line));
    }
    return promise;
  }

  /** Never rejects. */
  private async write(tenantId: string, line: Line): Promise<void> {
    const taken = takeSome(line.waiting);
    const news = taken.flatMap((one) => one.news);
    try {
      let added = 0;
      for (let at = 0; at < news.length; at += webhookLimits.newsAtOnce) {
        added += await this.ports.store.add(tenantId, news.slice(at, at + webhookLimits.newsAtOnce));
      }
      if (added > 0) this.announceSoon(tenantId);
      this.ports.telemetry.count("webhook_news", { result: "stored" }, added);
      for (const { resolve } of taken) resolve();
    } catch (error) {
      // Some of it may be stored.
      this.announceSoon(tenantId);
      for (const { reject } of taken) reject(error);
    }
    line.length -= news.length;
    if (line.waiting.length === 0) this.lines.delete(tenantId);
    else this.turns.enter(tenantId, () => this.write(tenantId, line));
  }

  /** Every process that caches the tenant then reloads it, so a flood is announced only a few times a second. */
  private announceSoon(tenantId: string): void {
    if (this.unannounced.has(tenantId)) return;
    this.unannounced.add(tenantId);
    this.ports.clock.setTimer(webhookLimits.newsLingerMs, () => {
      this.unannounced.delete(tenantId);
      this.ports.changes.announce(tenantId);
    });
  }
}

/** The first ones, as far as they fit into one transaction; one at least. */
function takeSome(waiting: Waiting[]): readonly Waiting[] {
  let [count, length] = [0, 0];
  for (const { news } of waiting) {
    if (count > 0 && length + news.length > webhookLimits.newsAtOnce) break;
    count += 1;
    length += news.length;
  }
  return waiting.splice(0, count);
}
