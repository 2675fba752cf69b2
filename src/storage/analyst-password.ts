import { createHash, timingSafeEqual } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { EngineError } from "./engine-error.ts";

/** The delay before a wrong password is answered, and how many wrong ones may wait in line. */
const WRONG_MS = 200;
const WRONG_WAITING_MAX = 16;

/** The names of the one user; none at all is fine, too. */
const USERS: ReadonlySet<string> = new Set(["", "default", "waybill"]);

/** Checks the password of the analysts' port, however ClickHouse's HTTP protocol carries it. */
export class AnalystPassword {
  private readonly digest: Buffer;
  private wrong: Promise<void> = Promise.resolve();
  private waiting = 0;

  constructor(password: string) {
    this.digest = digestOf(password);
  }

  /** If the password is wrong or missing, rejects with `EngineError` after a delay. Wrong ones wait in line. */
  async check(request: Request): Promise<void> {
    if (this.isRight(credentialsOf(request))) return;
    if (this.waiting >= WRONG_WAITING_MAX) throw BUSY;
    this.waiting += 1;
    this.wrong = this.wrong.then(() => delay(WRONG_MS));
    await this.wrong;
    this.waiting -= 1;
    throw WRONG;
  }

  /** Every credential given, in any place, must be right. */
  private isRight({ users, passwords }: Credentials): boolean {
    const right = passwords.filter((password) => timingSafeEqual(digestOf(password), this.digest));
    return passwords.length > 0 && right.length === passwords.length && users.every((user) => USERS.has(user));
  }
}

interface Credentials {
  readonly users: readonly string[];
  readonly passwords: readonly string[];
}

function credentialsOf(request: Request): Credentials {
  const asked = new URL(request.url).searchParams;
  const basic = /^Basic +([\w+/=-]+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  const [, user, password] = /^([^:]*):([^]*)$/.exec(Buffer.from(basic ?? "", "base64").toString()) ?? [];
  return {
    users: given(asked.get("user"), request.headers.get("x-clickhouse-user"), user),
    // A client may send an empty one in its headers and the real one in the address.
    passwords: given(asked.get("password"), request.headers.get("x-clickhouse-key"), password).filter(Boolean),
  };
}

const given = (...values: readonly (string | null | undefined)[]) =>
  values.filter((value) => value !== null && value !== undefined);

/** Digests have equal length, so the comparison takes the same time for all. */
const digestOf = (text: string) => createHash("sha256").update(text).digest();

const WRONG = new EngineError(
  516,
  "AUTHENTICATION_FAILED",
  "default: Authentication failed: password is incorrect, or there is no user with such name",
);
const BUSY = new EngineError(202, "TOO_MANY_SIMULTANEOUS_QUERIES", "Too many wrong passwords at once: try again soon");
