import { EVENT_TYPES, eventTimeMs } from "../../src/domain/jobs/event.ts";
import type { Book, ExportedEvent } from "./book.ts";

/** A job in the export: the types of its events, one bit each. */
interface JobEvents {
  bits: number;
  readonly tenant: string;
  error: string | null;
  sentMs: number | null;
}

/** Reads an export of all events, in its order: by tenant, then by event id. */
export class EventAudit {
  readonly jobs = new Map<string, JobEvents>();
  readonly repeated: string[] = [];
  readonly untold: string[] = [];
  total = 0;
  private tenant = "";
  private lastId = 0;
  /** For retried jobs: how often each of their events may still come, by type and job. */
  private readonly laterLives = new Map<string, number>();
  /** Events of the tenants with a webhook. */
  private readonly exported = new Map<string, Set<number>>();

  constructor(private readonly book: Pick<Book, "told" | "retries">) {}

  take(event: ExportedEvent): void {
    const { tenant_id: tenant, event_id: id, job_id: jobId, event_type: type } = event;
    this.total += 1;
    if (tenant === this.tenant && id <= this.lastId) {
      this.repeated.push(`event ${id} of ${tenant} (${type} of job ${jobId}) after event ${this.lastId}`);
    }
    this.tenant = tenant;
    this.lastId = id;
    const job = this.jobs.get(jobId) ?? { bits: 0, tenant, error: null, sentMs: null };
    this.jobs.set(jobId, job);
    const bit = toBit(type);
    // A reader can follow many links of one message.
    if ((job.bits & bit) !== 0 && type !== "clicked" && !this.isOfALaterLife(jobId, type))
      this.repeated.push(`${type} of job ${jobId} of ${tenant}`);
    job.bits |= bit;
    if (type === "sent") job.sentMs ??= eventTimeMs(id);
    if (type === "failed" || type === "bounced") job.error = event.result.error ?? event.result.reason ?? type;
    const told = this.book.told.get(tenant);
    if (told === undefined || id <= told.sinceEventId) return;
    const ids = this.exported.get(tenant) ?? new Set();
    this.exported.set(tenant, ids.add(id));
    if (!told.taken.has(id)) this.untold.push(`${tenant}: ${type} of job ${jobId}, event ${id}`);
  }

  private isOfALaterLife(jobId: string, type: ExportedEvent["event_type"]): boolean {
    const left = this.laterLives.get(`${type} ${jobId}`) ?? this.book.retries.get(jobId) ?? 0;
    this.laterLives.set(`${type} ${jobId}`, left - 1);
    return left > 0;
  }

  /** Events that a webhook received but the export lacks. */
  invented(): readonly string[] {
    return Array.from(this.book.told).flatMap(([tenant, { taken }]) =>
      Array.from(taken)
        .filter((id) => this.exported.get(tenant)?.has(id) !== true)
        .map((id) => `${tenant}: event ${id}`),
    );
  }

  has(jobId: string, type: ExportedEvent["event_type"]): boolean {
    return ((this.jobs.get(jobId)?.bits ?? 0) & toBit(type)) !== 0;
  }

  /** Whether one of its events is final. */
  isOver(jobId: string): boolean {
    return ((this.jobs.get(jobId)?.bits ?? 0) & ENDS) !== 0;
  }
}

function toBit(type: ExportedEvent["event_type"]): number {
  return 1 << EVENT_TYPES.indexOf(type);
}

const ENDS = toBit("sent") | toBit("failed") | toBit("bounced") | toBit("suppressed");
