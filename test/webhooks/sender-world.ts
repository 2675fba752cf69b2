import type { OpenRegistry } from "../../src/app/open-registry.ts";
import { JobIds } from "../../src/domain/ids.ts";
import { firstEventIdAt } from "../../src/domain/jobs/event.ts";
import type { StoredEventRow } from "../../src/domain/jobs/event-store.ts";
import { NetworkGuard } from "../../src/runtime/network-guard.ts";
import { systemClock } from "../../src/runtime/system-clock.ts";
import { WebhookClient } from "../../src/runtime/webhook-client.ts";
import { Database, type OpenDatabase } from "../../src/storage/postgres/database.ts";
import { Vault } from "../../src/storage/vault.ts";
import { DeliveryRepository, type DisabledWebhook } from "../../src/webhooks/delivery-repository.ts";
import { NewsDesk } from "../../src/webhooks/news-desk.ts";
import { NewsRepository } from "../../src/webhooks/news-repository.ts";
import type { WebhookContent } from "../../src/webhooks/webhook-repository.ts";
import { WebhookSender, type WebhookSenderPorts } from "../../src/webhooks/webhook-sender.ts";
import { FakeEventStore } from "../http/support/fake-event-store.ts";
import { LONGEST_WAITS } from "../support/longest-waits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { must } from "../support/must.ts";
import { QuietTelemetry } from "../support/quiet-telemetry.ts";
import { openRegistryDatabase, type RegistryDatabase } from "../support/registry-database.ts";
import { Undo } from "../support/undo.ts";
import { liveFeed, machineRandom } from "../tenants/machine.ts";
import { MASTER_KEY, openTestRegistry, SHARDS } from "../tenants/open-test-registry.ts";
import { Receiver } from "./receiver.ts";

const CONTENT: Omit<WebhookContent, "url"> = { description: null, eventTypes: null, channels: null, batchMax: 1 };
const guard = new NetworkGuard({ allow: ["127.0.0.0/8"], publicAllowed: false });

/** A process that calls webhooks. */
export interface RunningSender {
  readonly sender: WebhookSender;
  /** Hands its shards over, and stops. */
  stop(): Promise<void>;
}

/** A registry with tenants, an event store in memory, and processes that call webhooks between them. */
export class SenderWorld {
  readonly undo = new Undo();
  readonly clock = new ManualClock();
  readonly events = new FakeEventStore();
  readonly telemetry = new QuietTelemetry();
  readonly disabled: DisabledWebhook[] = [];
  private readonly jobIds = new JobIds(systemClock, machineRandom);
  private last = firstEventIdAt(Date.now());
  private senders: RunningSender[] = [];

  private constructor(
    readonly database: RegistryDatabase,
    readonly stores: OpenRegistry,
    private readonly feed: ReturnType<typeof liveFeed>,
    private readonly tenantIds: readonly string[],
  ) {}

  /** `database`: one that is open and migrated; by default, one of its own in memory. */
  static async open(tenantIds: readonly string[], given?: OpenDatabase): Promise<SenderWorld> {
    const database = given === undefined ? await openRegistryDatabase() : { ...given, isAway: false };
    const feed = liveFeed();
    const stores = await openTestRegistry(database, { feed });
    const world = new SenderWorld(database, stores, feed, tenantIds);
    world.undo.add(null, () => database.close());
    world.undo.add(null, () => stores.stop());
    for (const id of tenantIds) await must(stores.registry.createTenant({ id, name: id }));
    return world;
  }

  receiver(): Receiver {
    return this.undo.add(new Receiver(), (receiver) => receiver.stop());
  }

  /** The registry's store as a process uses it. */
  store(): DeliveryRepository {
    const vault = new Vault([MASTER_KEY], machineRandom);
    // Its time-outs use the machine's clock.
    const database = new Database(this.database.db, systemClock);
    return new DeliveryRepository({ database, vault, clock: this.clock });
  }

  /** The same with calls that fail, or are observed. */
  storeWith(change: Partial<WebhookSenderPorts["store"]>): WebhookSenderPorts["store"] {
    const store = this.store();
    return {
      ofShards: (shards) => store.ofShards(shards),
      ofTenants: (ids) => store.ofTenants(ids),
      openSecrets: (webhook) => store.openSecrets(webhook),
      trim: (one) => store.trim(one),
      note: (notes) => store.note(notes),
      ...change,
    };
  }

  /** Incoming texts are stored here. */
  news(): NewsRepository {
    const database = new Database(this.database.db, systemClock);
    return new NewsRepository({ database, clock: this.clock, random: LONGEST_WAITS, telemetry: this.telemetry });
  }

  /** Accepts incoming texts, as the API does. */
  desk(): NewsDesk {
    const store = this.news();
    return new NewsDesk({ store, changes: this.feed, clock: systemClock, telemetry: this.telemetry });
  }

  /** Another process, which holds all shards. */
  start(ports: Partial<WebhookSenderPorts> = {}): RunningSender {
    const sender = new WebhookSender({
      store: this.store(),
      feed: this.events,
      news: this.news(),
      caller: new WebhookClient({ guard }),
      changes: this.feed,
      onDisabled: async (webhook) => void this.disabled.push(webhook),
      clock: this.clock,
      random: machineRandom,
      telemetry: this.telemetry,
      ...ports,
    });
    sender.start();
    const ending = new AbortController();
    const lost = new AbortController().signal;
    const following = Array.from({ length: SHARDS }, (_, shard) =>
      sender.follow({ shard, lost, isSurelyHeld: () => true }, ending.signal),
    );
    const stop = async () => {
      ending.abort();
      await Promise.all(following);
      await sender.stop();
      this.senders = this.senders.filter((one) => one !== running);
    };
    const running = this.undo.add({ sender, stop }, (one) => one.stop());
    this.senders.push(running);
    return running;
  }

  /** A webhook that receives events from the next one on, and its secret. */
  async webhook(tenantId: string, url: string, content: Partial<WebhookContent> = {}) {
    const made = await must(this.stores.registry.webhooks.create(tenantId, { ...CONTENT, url, ...content }, this.last));
    return { id: made.webhook.webhookId, secret: made.secret };
  }

  /** The recorder stores events of the tenant; returns their ids. */
  record(tenantId: string, count: number, change: Partial<StoredEventRow> = {}): readonly number[] {
    const rows = Array.from({ length: count }, (): StoredEventRow => {
      this.last += 1;
      return {
        tenantId,
        jobId: this.jobIds.next(),
        channel: "email",
        eventId: this.last,
        type: "sent",
        result: {},
        finished: null,
        ...change,
      };
    });
    this.events.events.push(...rows);
    for (const { sender } of this.senders) sender.onRecorded(rows);
    return rows.map(({ eventId }) => eventId);
  }

  /** Ends every process and deletes every webhook. */
  async clear(): Promise<void> {
    this.database.isAway = false;
    this.events.failure = null;
    await Promise.all(this.senders.map((one) => one.stop()));
    const { webhooks } = this.stores.registry;
    for (const tenantId of this.tenantIds) {
      for (const { webhookId } of await must(webhooks.all(tenantId))) await must(webhooks.delete(tenantId, webhookId));
    }
    this.disabled.length = 0;
  }

  async shown(tenantId: string, id: string) {
    return must(this.stores.registry.webhooks.one(tenantId, id));
  }
}
