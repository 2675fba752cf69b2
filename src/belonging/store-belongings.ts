import type { Config } from "../config/config.ts";
import { ConfigurationError } from "../domain/errors.ts";
import type { BelongsTo } from "../events/event-store-belonging.ts";
import type { QueuedThen, RegistryIdentity } from "../storage/registry-identity.ts";

/** Stores that stand beside the queue, by the field of its metadata with their id. */
export type Beside = "registry" | "event_store";

/** Fields of the queue's metadata with the marks that the stores beside it had. */
export const MARK_OF = { registry: "registry_mark", event_store: "event_store_mark" } as const;

/** The identity of a store beside the queue. */
export interface StoreSays {
  readonly id: string;
  /** The id of the queue that it belongs to; null: none yet. */
  readonly queue: string | null;
  /** The last mark of that queue that it was told. */
  readonly mark: number;
  /** The content of that queue, if known. */
  readonly queued: QueuedThen | null;
}

export function registrySays({ registry: id, queue, mark, queued }: RegistryIdentity): StoreSays {
  return { id, queue, mark, queued };
}

export function eventStoreSays(id: string, { queue, mark }: BelongsTo): StoreSays {
  return { id, queue, mark, queued: null };
}

/**
 * Why a queue and a store beside it do not belong together, or are not of the same time; null: they do, or one of them is new
 * together with the other. `meta`: what the queue tells of itself.
 *
 * B1. Queue and store know each other's ids, so that none of them can be emptied or swapped without the other noticing.
 * B2. The queue's mark grows while processes run; a store is told only marks that the queue has passed, and the queue notes only marks
 *     that a store has on disk. So one with a smaller mark than the other knows is an older copy.
 */
export function problemBetween(
  what: Beside,
  config: Config,
  { meta, store }: { readonly meta: Readonly<Record<string, string>>; readonly store: StoreSays },
): ConfigurationError | null {
  const { queue = null, registry = null, [what]: owned = null } = meta;
  if (store.queue !== null && queue === null && registry === null) return emptiedQueue(what, config, store);
  if (owned !== null && owned !== store.id) return foreignStore(what, config, { owned, ...store });
  if (store.queue !== null && queue !== null && store.queue !== queue) return foreignQueue(what, config, store, queue);
  const queueMark = queue === null ? -1 : Number(meta["mark"] ?? 0);
  if (store.queue !== null && store.mark > queueMark) return olderQueue(what, config);
  if (Number(meta[MARK_OF[what]] ?? 0) > store.mark) return olderStore(what, config);
  return null;
}

const FOLDERS = { queue: "redis", registry: "postgres", event_store: "clickhouse" } as const;
const SETTINGS = { queue: "REDIS_URL", registry: "DATABASE_URL", event_store: "CLICKHOUSE_URL" } as const;
const NAMES = { queue: "queue", registry: "registry", event_store: "event store" } as const;

/** A store as the operator knows it. */
function place(what: keyof typeof NAMES, { redis, databaseUrl, clickhouseUrl }: Config) {
  const isPrivate = { queue: redis, registry: databaseUrl, event_store: clickhouseUrl }[what] === null;
  const name = NAMES[what];
  return {
    here: isPrivate ? `the private ${name} in WAYBILL_HOME` : `the ${name} at ${SETTINGS[what]}`,
    /** The remedy for a wrong one. Beside a shared queue a private store is a setting that was forgotten. */
    remedy:
      isPrivate && redis === null
        ? `put WAYBILL_HOME/${FOLDERS[what]} back, or set ${SETTINGS[what]} as before, or restore a backup`
        : `set ${SETTINGS[what]} as its other processes have it, or restore that ${name}`,
  };
}

const ADOPT = "stop every process and run `waybill adopt`";
const DOCS = "(docs/runbook.md)";
export const jobs = (count: number) => `${count} ${count === 1 ? "job" : "jobs"}`;
const short = (id: string) => id.slice(0, 8);
const held = ({ queued }: StoreSays) =>
  queued === null || queued.jobs === 0
    ? ""
    : `, which held at least ${jobs(queued.jobs)} that had not ended at ${queued.at.toISOString()}`;

function emptiedQueue(what: Beside, config: Config, store: StoreSays): ConfigurationError {
  const { here, remedy } = place("queue", config);
  return new ConfigurationError(
    `${sentence(here)} is empty, but ${place(what, config).here} belongs to queue ${short(store.queue ?? "")}${held(store)}: ` +
      `${remedy}; to go on with the empty one, without the jobs of the former one, ${ADOPT} ${DOCS}.`,
  );
}

function foreignQueue(what: Beside, config: Config, store: StoreSays, queue: string): ConfigurationError {
  const { here, remedy } = place("queue", config);
  return new ConfigurationError(
    `${sentence(here)} is queue ${short(queue)}, but ${place(what, config).here} belongs to queue ` +
      `${short(store.queue ?? "")}${held(store)}: ${remedy}; after a move on purpose, ${ADOPT} ${DOCS}.`,
  );
}

function foreignStore(
  what: Beside,
  config: Config,
  { owned, id, queue }: StoreSays & { readonly owned: string },
): ConfigurationError {
  const { here, remedy } = place(what, config);
  const is = `${short(id)}${queue === null ? ", a new one" : ""}`;
  return new ConfigurationError(
    `${sentence(place("queue", config).here)} belongs to another ${NAMES[what]} than ${here}: ${remedy} (its own is ` +
      `${short(owned)}, this is ${is}); after a move on purpose, ${ADOPT} ${DOCS}.`,
  );
}

/** Something that a store has shows that the queue's latest state is missing. */
export function olderQueue(what: Beside, config: Config): ConfigurationError {
  const { here, remedy } = place("queue", config);
  return new ConfigurationError(
    `${sentence(here)} is an older copy than ${place(what, config).here}: jobs that were accepted since are missing, and those ` +
      `that were sent since would be sent again. Decide: ${remedy}; to go on with the older copy, ${ADOPT} ${DOCS}.`,
  );
}

function olderStore(what: Beside, config: Config): ConfigurationError {
  const { here, remedy } = place(what, config);
  return new ConfigurationError(
    `${sentence(here)} is an older copy than ${place("queue", config).here} knows: what was written since is missing. ` +
      `Decide: ${remedy}; to go on with the older copy, ${ADOPT} ${DOCS}.`,
  );
}

function sentence(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
