/** A request exactly as it is sent, without the additions of a friendly client. */
export interface Request {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

/** An answer as it came. */
export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Sends it without following redirects. */
export async function probe(url: string, { method, path, headers = {}, body }: Request): Promise<Seen> {
  const init = { method, headers, redirect: "manual" as const, ...(body === undefined ? null : { body }) };
  const response = await fetch(`${url}${path}`, init);
  return { status: response.status, headers: response.headers, text: await readText(response) };
}

/** The beginning of an endless stream of events. */
async function readText(response: Response): Promise<string> {
  if (response.headers.get("content-type") !== "text/event-stream" || response.body === null) return response.text();
  const reader = response.body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

/** Parses the JSON for inspection. */
// oxlint-disable-next-line typescript/no-explicit-any
export function json(seen: Seen): any {
  return JSON.parse(seen.text);
}

/**
 * Returns why an answer is no clean refusal, or null: it must be 4xx, in the one shape of errors, and reveal no
 * internals.
 */
export function unclean({ status, text }: Seen, allowed: (status: number) => boolean = isRefusal): string | null {
  if (!allowed(status)) return `answered ${status} ${text.slice(0, 200)}`;
  return internals(text);
}

export function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}

/** Returns internals that a text reveals: stacks, files, the words of engines and parsers. */
export function internals(text: string): string | null {
  const found = INTERNALS.exec(text)?.[0];
  return found === undefined ? null : `it shows ${JSON.stringify(found)}`;
}

const INTERNALS =
  /\bat \w+[^\n]*\.(?:ts|js|lua):\d+|node_modules|\/src\/|\bSQLSTATE\b|DB::Exception|Code: \d+\.|syntax error at|ERR (?:wrong|unknown)|user_script|\bECONN\w+|TypeError|RangeError|SyntaxError|\bPGlite\b|\bioredis\b|\bdrizzle\b/i;
