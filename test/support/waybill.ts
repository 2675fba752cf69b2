import { openSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";
import { basicEnvironment } from "./basic-environment.ts";
import { eventually } from "./eventually.ts";
import { fillHome } from "./made-home.ts";
import { Scraper } from "./scraper.ts";

/** A running Waybill, started by its command line in a separate process. */
export interface Waybill {
  readonly url: string;
  readonly home: string;
  readonly pid: number;
  /** Its standard output. */
  readonly screen: string;
  /** The demo tenant's key; "" if this was not the first start. */
  readonly demoKey: string;
  /** Its log so far. */
  log(): string;
  kill(): Promise<void>;
  /** Its exit code, once it has ended by itself. */
  ended(): Promise<number>;
  /** Sends the signal, and returns the exit code. */
  stop(signal?: "SIGINT" | "SIGTERM"): Promise<number>;
  operator(method: string, path: string, body?: unknown): Promise<Answer>;
  request(apiKey: string, method: string, path: string, body?: unknown): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // Tests inspect any body, and fail if a member is missing.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/**
 * A data folder as before the first start, except for empty databases and the sandbox's keys, which take seconds to create.
 * Processes with a PostgreSQL elsewhere need none here.
 */
export async function temporaryHome({ hasPostgres = true } = {}): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "waybill-home-"));
  // A start refuses a folder that has a store but not the secrets that it was sealed with.
  loadConfig({ WAYBILL_HOME: path });
  await fillHome(path, { hasPostgres });
  return {
    path,
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

const ROOT = join(import.meta.dir, "../..");

export interface StartOptions {
  /** Modules that run before the program: `bun --preload`. */
  readonly preload?: readonly string[];
  /** The folder of the build to start. */
  readonly root?: string;
}

export async function startWaybill(
  home: string,
  environment: Readonly<Record<string, string>> = {},
  { preload = [], root = ROOT }: StartOptions = {},
): Promise<Waybill> {
  const log = await namelessFile();
  const server = Bun.spawn([process.execPath, ...preload.flatMap((file) => ["--preload", file]), "src/main.ts"], {
    cwd: root,
    env: { ...basicEnvironment(), ...PROCESSES, WAYBILL_HOME: home, PORT: "0", LOG_LEVEL: "warn", ...environment },
    stdout: "pipe",
    // To a file, because a full pipe would block the process.
    stderr: log.fd,
  });
  const screen = await readScreen(server.stdout);
  const url = /(?:API|Service) +(http:\S+)/.exec(screen)?.[1];
  if (url === undefined) {
    const code = await server.exited;
    throw new Error(`waybill did not start: it ended with ${code} and said ${screen}${log.read()}`);
  }
  const token = environment["OPERATOR_TOKEN"] ?? (await readFile(join(home, "operator-token"), "utf8")).trim();
  const call = async (path: string, init: RequestInit, body: unknown): Promise<Answer> => {
    const headers = new Headers(init.headers);
    if (body !== undefined) headers.set("content-type", "application/json");
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, { ...init, headers, ...sent });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  const scraper = new Scraper({ url, operatorToken: token });
  const watched = async (code: number): Promise<number> => {
    const complaints = await scraper.stop();
    if (complaints.length > 0) throw new Error(`what monitoring saw meanwhile:\n${complaints.join("\n")}`);
    return code;
  };
  return {
    url,
    home,
    pid: server.pid,
    screen,
    demoKey: /wb_\w+/.exec(screen)?.[0] ?? "",
    log: log.read,
    async kill() {
      server.kill("SIGKILL");
      await watched(await server.exited);
    },
    ended: async () => watched(await server.exited),
    async stop(signal = "SIGTERM") {
      server.kill(signal);
      return await watched(await server.exited);
    },
    operator: (method, path, body) =>
      call(`/dash/api${path}`, { method, headers: { authorization: `Bearer ${token}` } }, body),
    request: (apiKey, method, path, body) => call(path, { method, headers: { "x-api-key": apiKey } }, body),
  };
}

/** A file that only its descriptor reaches, so that it needs no removal. */
async function namelessFile(): Promise<{ readonly fd: number; read(): string }> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-log-"));
  const fd = openSync(join(folder, "log"), "a");
  await rm(folder, { recursive: true });
  return { fd, read: () => readFileSync(`/proc/self/fd/${fd}`, "utf8") };
}

/** Reads until the first screen is complete. The rest stays in the pipe: the program prints no more there. */
async function readScreen(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of output) {
    text += decoder.decode(chunk, { stream: true });
    if (/Waybill is ready[^]*(curl[^]*-d |Service +http[^]*\n\n)/.test(text)) break;
  }
  return text;
}

/** One process, unless a test or the whole run asks for more: `TEST_PROCESSES=api=2,dispatcher=2 bun test …`. */
const PROCESSES = { PROCESSES: process.env["TEST_PROCESSES"] ?? "1" };

/** Waits until the job has ended, and returns it. */
export function finalJob(waybill: Waybill, apiKey: string, jobId: string, withinMs = 15_000): Promise<Answer["body"]> {
  return eventually(
    `job ${jobId} ends`,
    async () => {
      const { body } = await waybill.request(apiKey, "GET", `/v1/jobs/${jobId}`);
      return ["success", "failed", "suppressed"].includes(body.status) ? body : null;
    },
    withinMs,
  );
}
