import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { UnavailableError } from "../domain/errors.ts";
import type { Telemetry } from "../domain/telemetry.ts";
import type { Json } from "../domain/texts/json.ts";

/** A unix socket's path may have 108 bytes on Linux, 104 elsewhere. */
const SOCKET_PATH_BYTES_MAX = 100;
/** How often a quiet task says that it goes on. */
const BEAT_MS = 2_000;
/** An answer that is silent for this long is given up. */
const SILENCE_MS_MAX = 30_000;

/**
 * A task that the running process performs for a command. `say` passes a line on at once; `gone` aborts when the command has
 * ended.
 */
export type ControlTask = (input: Json, say: (line: Json) => void, gone: AbortSignal) => Promise<Json>;

/** One line of an answer: a beat, something said, or the end. */
type Line = { readonly said: Json } | { readonly done: Json } | { readonly failed: string } | { readonly beat: true };

/**
 * The socket by which commands reach the process that holds the data folder and its engines. It is in the data folder, which
 * only its owner can enter: whoever reaches the socket could read and write all of the folder anyway. So no token is needed,
 * and the socket cannot be reached over a network.
 */
export function serveControl(
  home: string,
  tasks: Readonly<Record<string, ControlTask>>,
  telemetry: Telemetry,
): { stop(): void } {
  const { path, remove } = freeSocket(home);
  const server = Bun.serve({
    unix: path,
    async fetch(request) {
      const name = new URL(request.url).pathname.slice(1);
      const task = tasks[name];
      if (task === undefined) return new Response(null, { status: 404 });
      const input = (await request.json()) as Json;
      telemetry.log("info", "a command asks for a task", { task: name });
      return new Response(streamAnswer(task, input, request.signal), {
        headers: { "content-type": "application/x-ndjson" },
      });
    },
  });
  chmodSync(path, 0o600);
  return {
    stop() {
      void server.stop(true);
      remove();
    },
  };
}

function streamAnswer(task: ControlTask, input: Json, asked: AbortSignal): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  asked.addEventListener("abort", () => gone.abort(), { once: true });
  const encoder = new TextEncoder();
  return new ReadableStream({
    async start(controller) {
      const send = (line: Line) => {
        if (!gone.signal.aborted) controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
      };
      const beat = setInterval(() => send({ beat: true }), BEAT_MS);
      try {
        send({ done: await task(input, (said) => send({ said }), gone.signal) });
      } catch (error) {
        send({ failed: error instanceof Error ? error.message : String(error) });
      }
      clearInterval(beat);
      if (!gone.signal.aborted) controller.close();
    },
    cancel: () => gone.abort(),
  });
}

/** A running start, as a command sees it. */
export interface RunningStart {
  /** Runs the task there; returns its answer. Rejects if the task fails or the start ends meanwhile. */
  ask(task: string, input: Json, onSaid: (line: Json) => unknown, signal?: AbortSignal): Promise<Json>;
}

/** The start that holds the folder. */
export function runningStart(home: string): RunningStart {
  const unix = socketPath(home);
  return {
    async ask(task, input, onSaid, signal) {
      const late = new AbortController();
      const signals = AbortSignal.any(signal === undefined ? [late.signal] : [late.signal, signal]);
      let response: Response;
      try {
        const body = JSON.stringify(input);
        response = await fetch(`http://waybill/${task}`, { unix, method: "POST", body, signal: signals });
      } catch (error) {
        throw new UnavailableError(
          `${home} is in use, and the server that holds it does not answer: it may be starting, stopping, or of another version`,
          { cause: error },
        );
      }
      if (!response.ok || response.body === null) {
        throw new UnavailableError("the running server is of another version, which cannot do this");
      }
      for await (const line of readLines(response.body, () => late.abort())) {
        if ("said" in line) await onSaid(line.said);
        if ("failed" in line) throw new UnavailableError(line.failed);
        if ("done" in line) return line.done;
      }
      throw new UnavailableError("the server ended before it had finished");
    },
  };
}

async function* readLines(body: ReadableStream<Uint8Array>, giveUp: () => void): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = "";
  let silence = setTimeout(giveUp, SILENCE_MS_MAX);
  try {
    for await (const bytes of body) {
      clearTimeout(silence);
      silence = setTimeout(giveUp, SILENCE_MS_MAX);
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      // Our own server writes them.
      for (const line of lines) yield JSON.parse(line) as Line;
    }
  } catch (error) {
    throw new UnavailableError("the server ended before it had finished", { cause: error });
  } finally {
    clearTimeout(silence);
  }
}

/** In the data folder, or, if its path is too long for a socket, in a new folder that the file `control` names. */
function freeSocket(home: string): { readonly path: string; remove(): void } {
  const pointer = join(home, "control");
  rmSync(pointer, { force: true });
  const own = join(home, "control.sock");
  if (Buffer.byteLength(own) <= SOCKET_PATH_BYTES_MAX) {
    rmSync(own, { force: true });
    return { path: own, remove: () => rmSync(own, { force: true }) };
  }
  const folder = mkdtempSync(join(tmpdir(), "waybill-"));
  const path = join(folder, "control.sock");
  writeFileSync(pointer, path, { mode: 0o600 });
  return {
    path,
    remove() {
      rmSync(pointer, { force: true });
      rmSync(dirname(path), { recursive: true, force: true });
    },
  };
}

function socketPath(home: string): string {
  const pointer = join(home, "control");
  return existsSync(pointer) ? readFileSync(pointer, "utf8") : join(home, "control.sock");
}
