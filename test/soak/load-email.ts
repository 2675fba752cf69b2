import type { ApiAnswer } from "./api.ts";
import type { Aim, Message } from "./book.ts";
import type { LoadContext } from "./soak-world.ts";
import { type SoakTenant, TEMPLATE } from "./tenants.ts";
import { triedUntilDone } from "./tried-until-done.ts";

const BATCH_MAX = 40;
const LARGE_BYTES_MAX = 900_000;
/** All processes see a change of a tenant within a second; the longer time covers a fault in between. */
const SEEN_MS = 5_000;
const KEY_TRIES = 8;

/** One e-mail, submitted in one of the usual ways. */
export async function sendEmail(context: LoadContext): Promise<void> {
  const { dice, book, tenants } = context;
  const kind = dice.next();
  const aim: Aim = kind < 0.02 ? "refused" : "sent";
  const message = book.ask(tenants.sender(dice).id, "email", aim);
  const address = aim === "refused" ? "nouser" : kind < 0.03 ? "grey" : "u";
  const recipient = `${address}${message.seq}@example.com`;
  message.recipient = recipient;
  const size = dice.chance(0.004) ? dice.between(300_000, LARGE_BYTES_MAX) : dice.skewed(4_000);
  const body = mail(message, recipient, size);
  const key = dice.chance(0.2) ? `soak-${message.seq}` : null;
  const copies = dice.chance(0.05) ? { cc: [`cc${message.seq}@example.com`] } : {};
  await post(context, message, { ...body, ...copies }, key);
}

export function mail({ seq }: Message, to_address: string, bytes: number): Record<string, unknown> {
  const text = "lorem ipsum ".repeat(Math.ceil(bytes / 12));
  const headers = { "X-Soak": String(seq) };
  if (seq % 2 === 0) return { to_address, template_id: TEMPLATE, data: { name: "Ann", text }, headers };
  return { to_address, subject: `Number ${seq}`, html: `<p>Hello, this is a test.</p><p>${text}</p>`, headers };
}

function findTenant({ tenants }: LoadContext, message: Message): SoakTenant {
  const tenant = tenants.all.find(({ id }) => id === message.tenant);
  if (tenant === undefined) throw new Error(`no tenant ${message.tenant}`);
  return tenant;
}

/**
 * Sends it. Under an Idempotency-Key, a request without an answer is repeated until there is one, and an answered one
 * sometimes, too.
 */
async function post(context: LoadContext, message: Message, body: unknown, key: string | null): Promise<ApiAnswer> {
  const { api, book, dice } = context;
  const headers: Record<string, string> = key === null ? {} : { "idempotency-key": key };
  const send = async () => {
    const answer = await api.tenant(findTenant(context, message).apiKey, "POST", "/v1/send/email", body, { headers });
    // A repeat while the first is still in flight is refused, which leaves the first one's result open.
    if (answer.status !== 409) book.answered(message, answer.status, answer.body?.job_id);
    return answer;
  };
  const first = await send();
  if (key !== null && (first.status === 202 ? dice.chance(0.3) : isOpen(first))) repeat(context, send);
  return first;
}

function repeat(context: LoadContext, send: () => Promise<ApiAnswer>): void {
  const pauseMs = () => 500 + context.dice.between(0, 6_000);
  const isDone = async () => {
    context.did("repeated under a key");
    return !isOpen(await send());
  };
  context.later(pauseMs(), () => triedUntilDone(context, { most: KEY_TRIES, pauseMs }, isDone));
}

/** Whether it may have taken effect or not. */
function isOpen({ status }: ApiAnswer): boolean {
  return status === 0 || status >= 500 || status === 409 || status === 429;
}

/** Many messages in one request; returns their number. */
export async function sendBatch(context: LoadContext): Promise<number> {
  const { dice, book, tenants, api } = context;
  const tenant = tenants.sender(dice);
  const messages = Array.from({ length: dice.between(2, BATCH_MAX) }, () => book.ask(tenant.id, "email"));
  const bodies = messages.map((message) => ({
    ...mail(message, `b${message.seq}@example.com`, dice.skewed(500)),
    ...(message.seq % 2 === 0 ? {} : { text: "plain" }),
  }));
  const headers: Record<string, string> = dice.chance(0.7) ? { "idempotency-key": `batch-${messages[0]?.seq}` } : {};
  const send = async () => {
    const answer = await api.tenant(tenant.apiKey, "POST", "/v1/send/email/batch", { messages: bodies }, { headers });
    noteBatch(context, messages, answer);
    return answer;
  };
  const first = await send();
  if (Object.keys(headers).length > 0 && (isOpen(first) || dice.chance(0.3))) repeat(context, send);
  return messages.length;
}

function noteBatch({ book }: LoadContext, messages: readonly Message[], { status, body }: ApiAnswer): void {
  if (status !== 202) {
    if (status !== 409) for (const message of messages) book.answered(message, status, null);
    return;
  }
  const jobs = new Map<number, string>(
    body.jobs.map((one: { index: number; job_id: string }) => [one.index, one.job_id]),
  );
  const errors = new Set<number>(body.errors.map((one: { index: number }) => one.index));
  for (const [index, message] of messages.entries()) {
    const jobId = jobs.get(index);
    if (jobId !== undefined) book.answered(message, 202, jobId);
    else if (errors.has(index)) book.answered(message, 400, null);
    else book.misdeed("nothing comes from nowhere", `a batch's answer has no word about its message ${index}`);
  }
}

/** A message for later, which may be moved or cancelled meanwhile. */
export async function sendScheduled(context: LoadContext): Promise<void> {
  const { dice, book, tenants } = context;
  const message = book.ask(tenants.sender(dice).id, "email");
  const waitMs = dice.between(10_000, 90_000);
  message.dueMs = Date.now() + waitMs;
  message.timedMs = [Date.now()];
  const body = {
    ...mail(message, `s${message.seq}@example.com`, 100),
    scheduled_at: new Date(message.dueMs).toISOString(),
  };
  const { status } = await post(context, message, body, null);
  if (status !== 202) return;
  const fate = dice.next();
  if (fate < 0.3) context.later(dice.between(0, waitMs), () => cancel(context, message));
  else if (fate < 0.6) context.later(dice.between(0, waitMs), () => move(context, message));
}

async function cancel(context: LoadContext, message: Message): Promise<void> {
  const { status } = await context.api.tenant(
    findTenant(context, message).apiKey,
    "POST",
    `/v1/jobs/${message.jobId}/cancel`,
  );
  context.did(status === 200 ? "cancelled" : "cancelled too late or without an answer");
  if (status === 200) message.canceledMs = Date.now();
  else if (status === 0 || status >= 500) message.canceledMs = Number.NaN;
}

async function move(context: LoadContext, message: Message): Promise<void> {
  const toMs = Date.now() + context.dice.between(2_000, 60_000);
  const before = message.dueMs;
  const path = `/v1/jobs/${message.jobId}`;
  const body = { scheduled_at: new Date(toMs).toISOString() };
  // Until the answer it may come at either time.
  message.dueMs = Math.min(before, toMs);
  message.timedMs = [...message.timedMs, Date.now()];
  const { status } = await context.api.tenant(findTenant(context, message).apiKey, "PATCH", path, body);
  context.did(status === 200 ? "moved" : "moved too late or without an answer");
  if (status === 200) message.dueMs = toMs;
  else if (status >= 400 && status < 500) message.dueMs = before;
}

/** A message with a fallback; some have a recipient that does not exist. */
export async function sendWithFallback(context: LoadContext): Promise<void> {
  const { dice, book, tenants } = context;
  const tenant = tenants.sender(dice).id;
  const isGood = dice.chance(0.6);
  const message = book.ask(tenant, "email", isGood ? "sent" : "refused");
  const fallback = book.ask(tenant, "email", "any");
  const afterS = dice.between(30, 90);
  fallback.fallbackOf = message;
  fallback.dueMs = Date.now() + 1_000 * afterS;
  fallback.timedMs = [Date.now()];
  const send = { channel: "email", ...mail(fallback, `f${fallback.seq}@example.com`, 100) };
  const body = {
    ...mail(message, `${isGood ? "u" : "nouser"}${message.seq}@example.com`, 100),
    fallback: [{ after: `${afterS}s`, unless: ["sent"], send }],
  };
  const answer = await post(context, message, body, null);
  book.answered(fallback, answer.status, answer.body?.fallback?.[0]?.job_id);
  if (!isGood && dice.chance(0.5)) context.later(dice.between(5_000, 60_000), () => retry(context, message));
}

/** An operator retries a failed job, in vain. */
async function retry({ api, book, did }: LoadContext, { tenant, jobId }: Message): Promise<void> {
  if (jobId === null) return;
  // Without an answer, the result is unknown.
  book.retries.set(jobId, 1);
  const { status } = await api.operator("POST", `/tenants/${tenant}/jobs/${jobId}/retry`);
  if (status >= 400 && status < 500) book.retries.delete(jobId);
  did(`failed job tried again: ${status}`);
}

/** A tenant or an operator suppresses an address; later messages to it are not sent. */
export async function suppress(context: LoadContext): Promise<void> {
  const { dice, api, book, tenants } = context;
  const tenant = tenants.sender(dice);
  const address = `gone${book.messages.length}-${dice.between(0, 1_000_000)}@example.com`;
  const path = `/suppressions/${encodeURIComponent(address)}`;
  const answer = dice.chance(0.5)
    ? await api.tenant(tenant.apiKey, "PUT", `/v1${path}`, {})
    : await api.operator("PUT", `/tenants/${tenant.id}${path}`, {});
  context.did(answer.status < 300 && answer.status > 0 ? "suppressed" : "suppressed without an answer");
  if (answer.status === 200) context.later(SEEN_MS, () => sendToSuppressed(context, tenant, address));
}

async function sendToSuppressed(context: LoadContext, tenant: SoakTenant, address: string): Promise<void> {
  const message = context.book.ask(tenant.id, "email", "suppressed");
  await post(context, message, mail(message, address, 100), null);
}

/** A reader follows the unsubscribe link of a mail that arrived: no more mail is sent to that address. */
export async function unsubscribe(context: LoadContext): Promise<void> {
  const { mail: provider, book } = context;
  const link = provider.links.shift();
  const former = link === undefined ? undefined : book.messages[link.seq];
  if (link === undefined || former === undefined || former.aim !== "sent") return;
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const path = new URL(link.url).pathname;
  const answer = await context.api.call("POST", path, "List-Unsubscribe=One-Click", { headers });
  context.did(`unsubscribed: ${answer.status}`);
  const address = link.address;
  if (answer.status === 200)
    context.later(SEEN_MS, () => sendToSuppressed(context, findTenant(context, former), address));
}

/** A reader's mail program loads the pixel of a mail, more than once, as is usual. */
export async function open({ mail: provider, api, did }: LoadContext): Promise<void> {
  const pixel = provider.pixels.shift();
  if (pixel === undefined) return;
  const loads = [1, 2, 3].map(() => api.call("GET", new URL(pixel).pathname, undefined, {}));
  const [first] = await Promise.all(loads);
  did(`opened: ${first?.status}`);
}
