import type { Message } from "./book.ts";
import type { LoadContext } from "./soak-world.ts";
import { triedUntilDone } from "./tried-until-done.ts";

/** By then its reports have come, unless a part was away all the time. */
const SETTLED_MS = 60_000;
const REPEATED_MS = 5_000;
const TRIES = 40;
/** The longest that the look-up of a recipient lags behind the event store. */
const LOOKED_FOR_MS = 15_000;

/** An operator erases a recipient of an earlier message, and searches for them afterwards. */
export async function erase(context: LoadContext): Promise<void> {
  const { api, dice, book, did } = context;
  const message = book.messages[dice.between(0, Math.max(0, book.messages.length - 1))];
  if (message === undefined || message.recipient === null || book.erased.has(message.seq)) return;
  const [first] = book.arrivals.get(message.seq) ?? [];
  if (first === undefined || message.fate !== "accepted" || Date.now() - first.atMs < SETTLED_MS) return;
  book.erased.add(message.seq);
  const { tenant, recipient } = message;
  await triedUntilDone(context, { most: TRIES, pauseMs: () => REPEATED_MS }, async () => {
    const { status } = await api.operator("POST", `/tenants/${tenant}/erasures`, { recipient });
    did(`erased: ${status}`);
    if (status === 200) context.later(LOOKED_FOR_MS, () => lookFor(context, message));
    return status === 200;
  });
}

async function lookFor({ api, book }: LoadContext, { recipient, jobId }: Message): Promise<void> {
  const { status, body } = await api.operator("GET", `/jobs?recipient=${encodeURIComponent(recipient ?? "")}`);
  if (status === 200 && body.jobs.length > 0)
    book.misdeed("who is erased is found nowhere", `${recipient} of job ${jobId}: ${JSON.stringify(body.jobs)}`);
}
