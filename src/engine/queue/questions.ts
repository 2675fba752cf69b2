import { type Clock, sleep } from "../../domain/clock.ts";
import { type AskedJob, type JobQuestions, type OwnersAnswer, WAITS } from "../../domain/jobs/job-questions.ts";
import type { Random } from "../../domain/random.ts";
import { isJsonObject } from "../../domain/texts/json.ts";
import { type RedisConnection, redisFailure } from "./connection.ts";
import { QUESTIONS_CHANNEL, shardPrefix } from "./keys.ts";

/** An owner answers at once; the asker does not wait for a process of a former release, which never answers. */
const ANSWER_MS = 600;
const LOOK_MS = 15;
/** The asker stops waiting before this. */
const KEPT_MS = 5_000;

type Answerer = Parameters<JobQuestions["onQuestion"]>[0];

/**
 * Questions to the owner of a shard, over publish and subscribe: `<id> <shard> <tenant> <channel> <job>`. The answer is
 * a key of the shard that expires. Both may be lost, and neither is repeated: the answer is only an explanation.
 */
export class RedisQuestions implements JobQuestions {
  private readonly answerers = new Set<Answerer>();

  constructor(
    private readonly connection: RedisConnection,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  async ask(shard: number, { tenantId, channel, jobId }: AskedJob): Promise<OwnersAnswer | null> {
    const id = this.random.fill(new Uint8Array(12)).toHex();
    const key = formatAnswerKey(shard, id);
    const untilMs = this.clock.monotonicMs() + ANSWER_MS;
    try {
      await this.connection.publish(QUESTIONS_CHANNEL, [id, shard, tenantId, channel, jobId].join(" "));
      while (this.clock.monotonicMs() < untilMs) {
        await sleep(this.clock, LOOK_MS);
        const text = await this.connection.get(key);
        if (text !== null) return readAnswer(text);
      }
      return null;
    } catch (error) {
      throw redisFailure(error);
    }
  }

  onQuestion(answer: Answerer): () => void {
    this.answerers.add(answer);
    return () => this.answerers.delete(answer);
  }

  /** Handles a published question. Never rejects. */
  async hear(text: string): Promise<void> {
    const [id = "", shard = "", tenantId = "", channel = "", jobId = ""] = text.split(" ");
    for (const answerer of this.answerers) {
      const answer = answerer(Number(shard), { tenantId, channel, jobId });
      if (answer === null) continue;
      // The asker makes do without it.
      await this.connection
        .set(formatAnswerKey(Number(shard), id), JSON.stringify(answer), "PX", KEPT_MS)
        .catch(() => null);
      return;
    }
  }
}

function formatAnswerKey(shard: number, id: string): string {
  return `${shardPrefix(shard)}:answer:${id}`;
}

/** Returns null for the answer of a later release that cannot be read. */
function readAnswer(text: string): OwnersAnswer | null {
  const value: unknown = JSON.parse(text);
  if (!isJsonObject(value)) return null;
  const { waitsFor, forMs, why } = value;
  const known = WAITS.find((word) => word === waitsFor);
  if (known === undefined && waitsFor !== null) return null;
  return {
    waitsFor: known ?? null,
    forMs: typeof forMs === "number" ? forMs : null,
    ...(typeof why === "string" && { why }),
  };
}
