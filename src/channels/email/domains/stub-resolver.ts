import type { Clock } from "../../../domain/clock.ts";
import type { Random } from "../../../domain/random.ts";
import type { DnsAnswer, DnsResolver, MxRecord } from "./dns.ts";
import { exchange, type NameServer } from "./dns-exchange.ts";
import { type AnswerRecord, type DnsReply, encodeQuestion, RECORD_TYPES } from "./dns-message.ts";

export interface StubResolverOptions {
  /** `ip:port` or `[ip]:port`. The first three are tried, in this order. */
  readonly servers: readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  /** Time limit for one server to answer. Default 1500. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS_DEFAULT = 1_500;
const SERVERS_MAX = 3;
const ROUNDS = 2;
/** After this time, no further server is tried. */
const LOOKUP_MS_MAX = 6_000;
/** A longer chain of aliases is treated as a loop. */
const ALIASES_MAX = 8;
const NO_ERROR = 0;
const NO_SUCH_NAME = 3;

/**
 * Queries recursive name servers without a cache, because a user who has just corrected a record wants to see the new
 * one. The runtime's own resolver does not work here: Bun 1.4 returns the strings of one TXT record as several records
 * (oven-sh/bun, issue 21370), so one DKIM key looks like two, and it caches answers.
 */
export class StubResolver implements DnsResolver {
  private readonly servers: readonly NameServer[];

  constructor(private readonly options: StubResolverOptions) {
    this.servers = options.servers.slice(0, SERVERS_MAX).map(nameServer);
  }

  async txt(name: string): Promise<DnsAnswer<string>> {
    const answer = await this.lookUp(name, "TXT");
    return only(answer, (record) => (record.type === "TXT" ? record.text : null));
  }

  async mx(name: string): Promise<DnsAnswer<MxRecord>> {
    const answer = await this.lookUp(name, "MX");
    return only(answer, (record) =>
      record.type === "MX" ? { exchange: record.exchange, priority: record.priority } : null,
    );
  }

  /**
   * Queries a name. Recursive servers follow aliases themselves; if one stops before the end of the chain, the rest is
   * queried separately.
   */
  private async lookUp(name: string, type: "TXT" | "MX"): Promise<DnsAnswer<AnswerRecord>> {
    let wanted = name.toLowerCase();
    for (let aliases = 0; aliases <= ALIASES_MAX; aliases += 1) {
      const reply = await this.ask(wanted, type);
      if (typeof reply === "string") return { kind: "unanswered", why: reply };
      const end = endOfAliases(wanted, reply.answers);
      const records = reply.answers.filter((record) => record.type === type && record.name === end);
      if (records.length > 0) return { kind: "found", records };
      if (end === wanted || reply.rcode === NO_SUCH_NAME) return { kind: "absent" };
      wanted = end;
    }
    return { kind: "unanswered", why: `${name} is an alias of an alias of an alias, without an end` };
  }

  /** Returns a server's reply, or the reason why there is none. */
  private async ask(name: string, type: "TXT" | "MX"): Promise<DnsReply | string> {
    const { clock, timeoutMs = TIMEOUT_MS_DEFAULT } = this.options;
    const startedMs = clock.monotonicMs();
    let why = "no name server is known";
    for (const server of Array.from({ length: ROUNDS }, () => this.servers).flat()) {
      if (clock.monotonicMs() - startedMs > LOOKUP_MS_MAX) break;
      try {
        const id = this.questionNumber();
        const question = encodeQuestion(id, name, type);
        const reply = await exchange({
          server,
          question,
          asked: { id, name, type: RECORD_TYPES[type] },
          timeoutMs,
          clock,
        });
        if (reply.rcode === NO_ERROR || reply.rcode === NO_SUCH_NAME) return reply;
        why = RCODES[reply.rcode] ?? `the name server answered with code ${reply.rcode}`;
      } catch (error) {
        why = error instanceof Error ? error.message : String(error);
      }
    }
    return `${name} (${type}) could not be looked up: ${why}`;
  }

  private questionNumber(): number {
    const [high = 0, low = 0] = this.options.random.fill(new Uint8Array(2));
    return high * 256 + low;
  }
}

const RCODES: Readonly<Record<number, string>> = {
  2: "the name server failed (SERVFAIL)",
  5: "the name server refused to answer",
};

/** Follows the aliases from `name` to the last one. */
function endOfAliases(name: string, answers: readonly AnswerRecord[]): string {
  const targets = new Map(answers.flatMap((record) => (record.type === "CNAME" ? [[record.name, record.target]] : [])));
  let end = name;
  for (let aliases = 0; aliases < ALIASES_MAX; aliases += 1) end = targets.get(end) ?? end;
  return end;
}

function only<T>(answer: DnsAnswer<AnswerRecord>, pick: (record: AnswerRecord) => T | null): DnsAnswer<T> {
  if (answer.kind !== "found") return answer;
  const records = answer.records.map(pick).filter((record) => record !== null);
  return { kind: "found", records };
}

function nameServer(address: string): NameServer {
  const end = address.lastIndexOf(":");
  return { host: address.slice(0, end).replace(/^\[(.*)\]$/, "$1"), port: Number(address.slice(end + 1)) };
}
