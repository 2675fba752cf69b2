import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { eventually } from "../support/eventually.ts";
import { Attacks } from "./support/attacks.ts";
import { CALLS, findDashboardFile } from "./support/endpoint-calls.ts";
import { equip, type Identifiers } from "./support/identifiers.ts";
import {
  buildArguments,
  buildRequest,
  fetchOperations,
  type Operation,
  withCredentials,
} from "./support/operations.ts";
import { startTarget, type Target } from "./support/target.ts";
import { MEMORY_SOCKET } from "./support/tell-memory.ts";

/*
 * The same bytes, sent in twenty ways to every endpoint that may read them, to several endpoints at once. None of the
 * bodies ends, so all buffered bytes are still referenced while the server reports its memory (`tell-memory.ts`).
 * Groups of endpoints that cost too much are halved and retried until each culprit stands alone.
 */

setDefaultTimeout(240_000);
const attacks = new Attacks("encodings of bodies");

const KIB = 1024;
/** No compression makes it much shorter, and only its end shows that it is no JSON. */
const BYTES = Buffer.from(randomBytes(48 * KIB).toString("base64"));
const TIMES_MAX = 10;
/** Few enough that one endpoint that keeps each chunk by itself, and so 30 MB or more, stands out. */
const GROUP_SIZE = 8;

interface Encoding {
  readonly name: string;
  readonly headers: string;
  /** Each is written separately. */
  readonly writes: readonly Buffer[];
}

const CHUNKED = "Transfer-Encoding: chunked";
const GZIP = "Content-Encoding: gzip\r\n";
const OF_LENGTH = `Content-Length: ${BYTES.length + 1}`;
/** Without its last bytes, so that it does not end. */
const zipped = gzipSync(BYTES).subarray(0, -8);

function cut(bytes: Buffer, size: number): readonly Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** `extra` follows the size of each chunk. */
function inChunks(bytes: Buffer, size: number, extra = ""): Buffer {
  const parts = cut(bytes, size).flatMap((piece) => [`${piece.length.toString(16)}${extra}\r\n`, piece, "\r\n"]);
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

/** Blocks of one byte that are stored uncompressed, each with a head of five. */
function inStoredBlocks(bytes: Buffer): Buffer {
  const blocks = Buffer.alloc(bytes.length * 6);
  for (const [at, byte] of bytes.entries()) blocks.set([0, 1, 0, 0xfe, 0xff, byte], at * 6);
  return Buffer.concat([gzipSync("").subarray(0, 10), blocks]);
}

const members = Buffer.concat(cut(BYTES, 64).map((part) => gzipSync(part)));

const AT_ONCE: Encoding = { name: "its length", headers: OF_LENGTH, writes: [BYTES] };

const ENCODINGS: readonly Encoding[] = [
  AT_ONCE,
  { name: "its length, in segments of 1,400 bytes", headers: OF_LENGTH, writes: cut(BYTES, 1400) },
  { name: "its length, in segments of 500 bytes", headers: OF_LENGTH, writes: cut(BYTES, 500) },
  ...[1, 2, 3, 7, 64, KIB, 16 * KIB, BYTES.length].map((size) => ({
    name: `chunks of ${size}`,
    headers: CHUNKED,
    writes: [inChunks(BYTES, size)],
  })),
  { name: "chunks of 1 in bursts of 1,000", headers: CHUNKED, writes: cut(inChunks(BYTES, 1), 6000) },
  {
    name: "chunks of 1 behind a whole one",
    headers: CHUNKED,
    writes: [inChunks(BYTES, BYTES.length), inChunks(BYTES, 1)],
  },
  { name: "chunks of 1 with extensions", headers: CHUNKED, writes: [inChunks(BYTES, 1, `;${"a".repeat(5)}`)] },
  { name: "chunks of 64 with extensions", headers: CHUNKED, writes: [inChunks(BYTES, 64, `;${"a".repeat(200)}`)] },
  { name: "gzip", headers: GZIP + CHUNKED, writes: [inChunks(zipped, zipped.length)] },
  { name: "gzip in chunks of 1", headers: GZIP + CHUNKED, writes: [inChunks(zipped, 1)] },
  { name: "gzip in chunks of 64", headers: GZIP + CHUNKED, writes: [inChunks(zipped, 64)] },
  { name: "gzip of stored bytes", headers: GZIP + CHUNKED, writes: [inChunks(inStoredBlocks(BYTES), KIB)] },
  { name: "gzip of many members", headers: GZIP + CHUNKED, writes: [inChunks(members, 64)] },
];

let target: Target;
let ids: Identifiers;
let operations: readonly Operation[] = [];
let dashboardFile = "";

beforeAll(async () => {
  const preload = [join(import.meta.dir, "support/tell-memory.ts")];
  target = await startTarget({ PROCESSES: "1" }, { preload });
  ids = await equip(target, target.victim);
  operations = (await fetchOperations(target.url)).filter(({ method }) => method !== "GET");
  dashboardFile = await findDashboardFile(target.url);
});
afterAll(() => target?.stop());

/** The head of the operation's request up to the headers that describe the body's transfer. */
function buildHead(operation: Operation): string {
  const { operatorToken, webhookSecret, url } = target;
  const fresh = { word: "encoded.", verifyToken: webhookSecret, operatorToken, dashboardFile };
  const secrets = { apiKey: target.victim.apiKey, operatorToken, passToken: ids.passToken, webhookSecret };
  const { method, path, headers } = withCredentials(
    operation,
    buildRequest(operation, buildArguments(operation, ids, fresh)),
    secrets,
  );
  const lines = Object.entries({ host: new URL(url).host, "content-type": "application/json", ...headers });
  return `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}`;
}

interface Sending {
  readonly socket: Socket;
  readonly status: () => number | null;
  /** Resolves when the whole body has left this process, or the server refuses the rest. */
  sendBody(): Promise<void>;
}

/** Resolves when the head has left this process. */
async function open(head: string, { headers, writes }: Encoding): Promise<Sending> {
  const socket = connect(Number(new URL(target.url).port), "127.0.0.1");
  let answer = "";
  socket.setNoDelay(true);
  socket.on("data", (data) => (answer += data.toString("latin1")));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()).on("error", () => resolve()));
  const write = (bytes: Buffer | string) => new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  const writeAll = async () => {
    for (const bytes of writes) await write(bytes);
  };
  await Promise.race([write(`${head}${headers}\r\n\r\n`), closed]);
  const status = () => (answer === "" ? null : Number(answer.slice(9, 12)));
  return { socket, status, sendBody: () => Promise.race([writeAll(), closed]) };
}

/** The server has handled all received chunks by then; it has counted tenants' requests. */
async function untilRead(): Promise<void> {
  for (let n = 0; n < 3; n++) await target.call(target.victim, "GET", "/v1/jobs/none");
}

async function bytesInUse(): Promise<number> {
  await untilRead();
  const told = await fetch("http://memory/", { unix: join(target.waybill.home, MEMORY_SOCKET) });
  return Number(await told.text());
}

/** Operations whose bodies were read, or were too long to be read. */
const reading = new Set<string>();

/**
 * The growth of the memory that the server references while it has the bodies: for each operation one in each of the
 * encodings.
 */
async function measureCost(group: readonly Operation[]): Promise<number> {
  const before = await bytesInUse();
  const wanted = group.flatMap((operation) => ENCODINGS.map((encoding) => ({ operation, encoding })));
  const sendings = await Promise.all(wanted.map(({ operation, encoding }) => open(buildHead(operation), encoding)));
  try {
    // A tenant's chunks are joined while its request is counted; here they must be read as they come.
    await untilRead();
    await Promise.all(sendings.map((sending) => sending.sendBody()));
    const grown = (await bytesInUse()) - before;
    for (const [at, { operation, encoding }] of wanted.entries()) {
      if (encoding === AT_ONCE && [null, 413].includes(sendings[at]?.status() ?? null)) reading.add(operation.id);
    }
    return grown;
  } finally {
    for (const { socket } of sendings) socket.destroy();
  }
}

/** The operations that keep too much of a body, each with the number of bytes. */
async function greedy(group: readonly Operation[]): Promise<readonly { id: string; bytes: number }[]> {
  const cost = await measureCost(group);
  // One endpoint may take ten times as much as the best encoding, which takes no less than its bytes, and the others as much.
  if (cost < (group.length - 1 + TIMES_MAX) * ENCODINGS.length * BYTES.length) return [];
  const [only, another] = group;
  if (only !== undefined && another === undefined) return [{ id: only.id, bytes: cost }];
  const half = Math.ceil(group.length / 2);
  return [...(await greedy(group.slice(0, half))), ...(await greedy(group.slice(half)))];
}

test("bodies of the same bytes cost much the same memory, however they come", async () => {
  expect(ENCODINGS).toHaveLength(20);
  const found = new Map<string, number>();
  for (let at = 0; at < operations.length; at += GROUP_SIZE) {
    for (const { id, bytes } of await greedy(operations.slice(at, at + GROUP_SIZE))) found.set(id, bytes);
  }
  await attacks.run(
    operations,
    ({ method, path }) => `${method} ${path}`,
    ({ id }) => {
      const bytes = found.get(id);
      return bytes === undefined ? null : `twenty bodies of ${BYTES.length} bytes took ${bytes} bytes`;
    },
  );
});

test("the attacks above were well-formed: the calls that take a body waited for its end", () => {
  const names = { word: "", verifyToken: "", operatorToken: "", dashboardFile };
  const taking = operations.filter(({ id }) => CALLS[id]?.(ids, names).body !== undefined);
  // The form of a pass is read only for a pass that requires it, which no pass here does.
  expect(taking.filter(({ id }) => !reading.has(id)).map(({ id }) => id)).toEqual(["personalizePass"]);
});

test("a body in crumbs is refused and its connection closed, a short one is taken", async () => {
  const headFor = (wanted: string) => {
    const operation = operations.find(({ id }) => id === wanted);
    if (operation === undefined) throw new Error(`the document has no ${wanted}`);
    return buildHead(operation);
  };
  // An unknown caller's body is read at once; a tenant's chunks are joined while its request is counted.
  const crumbs = await open(headFor("takeWhatsappWebhook"), {
    name: "crumbs",
    headers: CHUNKED,
    writes: [inChunks(BYTES, 1)],
  });
  await crumbs.sendBody();
  expect(await eventually("an answer", () => crumbs.status())).toBe(400);
  await eventually("the connection is closed", () => crumbs.socket.destroyed);
  const message = { to_address: "ann@example.com", template_id: ids.template, data: { text: "x".repeat(3000) } };
  const whole = Buffer.concat([inChunks(Buffer.from(JSON.stringify(message)), 1), Buffer.from("0\r\n\r\n")]);
  const head = headFor("sendEmail").replace(/idempotency-key.*\r\n/, "");
  const short = await open(head, { name: "short", headers: CHUNKED, writes: [whole] });
  await short.sendBody();
  expect(await eventually("an answer", () => short.status())).toBe(202);
  short.socket.destroy();
});
