import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Creates job ids: UUID version 7 (RFC 9562, 5.7), which begin with their time and are otherwise unguessable. */
export class JobIds {
  private readonly pool = new Uint8Array(10 * 256);
  private used = this.pool.length;

  constructor(
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  next(): string {
    if (this.used === this.pool.length) {
      this.random.fill(this.pool);
      this.used = 0;
    }
    const at = this.used;
    this.used += 10;
    const time = this.clock.nowMs().toString(16).padStart(12, "0");
    const hex = (offset: number) => HEX[this.pool[at + offset] ?? 0] ?? "00";
    const version = 0x70 | ((this.pool[at] ?? 0) & 0x0f);
    const variant = 0x80 | ((this.pool[at + 2] ?? 0) & 0x3f);
    return (
      `${time.slice(0, 8)}-${time.slice(8, 12)}-${HEX[version]}${hex(1)}-${HEX[variant]}${hex(3)}-` +
      `${hex(4)}${hex(5)}${hex(6)}${hex(7)}${hex(8)}${hex(9)}`
    );
  }

  /** Returns the base of a batch's job ids (`idInBatch`). */
  nextBatch(): string {
    const id = this.next();
    return `${id.slice(0, RANDOM_A_AT)}000${id.slice(RANDOM_A_AT + RANDOM_A_CHARS)}`;
  }
}

/** The twelve bits behind an id's version (`rand_a`), and its last 32 bits. */
const [RANDOM_A_AT, RANDOM_A_CHARS, LAST_AT] = [15, 3, 28];
/** 2^32 divided by the golden ratio, odd: multiples spread over all values, and differ. */
const SPREAD = 0x9e3779b1;

/**
 * Returns the id of a batch's message: a UUIDv7 that has the index (0 to 4,095) as a counter behind its time (RFC 9562,
 * 6.2, method 1), so ids rise with the index. The last bits differ from message to message, because samples are drawn
 * by them (`isSampled`).
 */
export function idInBatch(baseId: string, index: number): string {
  const last = (Number.parseInt(baseId.slice(LAST_AT), 16) ^ Math.imul(index, SPREAD)) >>> 0;
  const counter = index.toString(16).padStart(RANDOM_A_CHARS, "0");
  const middle = baseId.slice(RANDOM_A_AT + RANDOM_A_CHARS, LAST_AT);
  return `${baseId.slice(0, RANDOM_A_AT)}${counter}${middle}${last.toString(16).padStart(8, "0")}`;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether the text has the form of a job id: a lower-case UUIDv7. */
export function isJobId(text: string): boolean {
  return UUID.test(text);
}

/** Whether the job belongs to the share (0 to 1) of all jobs that is logged. Every process decides alike. */
export function isSampled(jobId: string, share: number): boolean {
  return share > 0 && Number.parseInt(jobId.slice(-8), 16) < share * 2 ** 32;
}

/** Returns an id below every id that is created at that time or later, and above all earlier ones. */
export function jobIdAt(unixMs: number): string {
  const hex = Math.max(0, Math.floor(unixMs)).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7000-8000-000000000000`;
}

/** Returns the time at which the id was created, in unix milliseconds. The caller has checked it with `isJobId`. */
export function jobTimeMs(jobId: string): number {
  return Number.parseInt(jobId.slice(0, 8) + jobId.slice(9, 13), 16);
}

/** Returns when the job was accepted, or last retried by an operator (unix ms). */
export function acceptedMs({ jobId, retriedAtMs = 0 }: JobTimes): number {
  return Math.max(jobTimeMs(jobId), retriedAtMs);
}

/** Returns since when the job is to be delivered (unix ms): its acceptance, its scheduled time, or its retry. */
export function lifeBeganMs(job: JobTimes): number {
  return Math.max(acceptedMs(job), job.dueMs ?? 0);
}

interface JobTimes {
  readonly jobId: string;
  readonly retriedAtMs?: number;
  /** When it was to be sent. */
  readonly dueMs?: number;
}
