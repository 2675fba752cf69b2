import { recipientKey } from "../../../domain/channels/email.ts";
import { isJsonObject } from "../../../domain/texts/json.ts";
import type { SendBodies } from "./send-body.ts";
import { overLimit, SmtpRefusal } from "./smtp-refusal.ts";

export interface Submission {
  readonly apiKey: string;
  readonly recipients: readonly string[];
  readonly bodies: SendBodies;
  /** The message as received. */
  readonly message: Uint8Array;
  /** Serves a request of `POST /v1/send/email` as the API does. */
  send(request: Request, isCounted: boolean): Promise<Response>;
}

/** Requests in flight at a time. */
const AT_A_TIME = 8;
/** Larger bodies are sent one after the other, because each takes memory. */
const LARGE_CHARS = 256 * 1024;
/** Job ids in a reply. */
const IDS_SHOWN = 8;

/**
 * Queues one job for each recipient, each by a separate request with its own key: a client that sends the message again
 * after a lost or temporary reply gets the same jobs. The first recipient, whose request is already counted, goes
 * ahead, because an error in the message concerns all of them: a message is refused whole, unless the tenant changes or
 * a limit is reached on the way.
 *
 * Returns the reply's text once every job is on disk. Throws an `SmtpRefusal`.
 */
export async function submit(submission: Submission): Promise<string> {
  const { recipients } = submission;
  const keys = buildKeySource(submission);
  const jobIds: string[] = [];
  let failure: SmtpRefusal | null = null;
  for (let at = 0, many = 1; at < recipients.length && failure === null; at += many, many = groupSize(submission)) {
    const group = recipients.slice(at, at + many);
    const isCounted = at === 0;
    const answers = await Promise.all(group.map((recipient) => sendOne(submission, { recipient, keys, isCounted })));
    for (const answer of answers) {
      if (answer instanceof SmtpRefusal) failure ??= answer;
      else jobIds.push(answer);
    }
  }
  if (failure !== null) throw jobIds.length === 0 ? failure : inPart(failure, jobIds.length, recipients.length, keys);
  const more = jobIds.length > IDS_SHOWN ? ` and ${jobIds.length - IDS_SHOWN} more` : "";
  return `2.0.0 queued as ${jobIds.slice(0, IDS_SHOWN).join(", ")}${more}`;
}

function groupSize({ bodies, recipients: [first = ""] }: Submission): number {
  return bodies.bodyFor(first).length > LARGE_CHARS ? 1 : AT_A_TIME;
}

/**
 * Builds the common part of the recipients' keys; null if the message has no identity to distinguish it from an equal
 * one.
 */
function buildKeySource({ bodies, message }: Submission): string | null {
  if (bodies.idempotencyKey !== null) return `key\n${bodies.idempotencyKey}`;
  // With a Message-ID, the same bytes are the same message.
  if (bodies.messageId === null) return null;
  return `message\n${new Bun.CryptoHasher("sha256").update(message).digest("base64url")}`;
}

/** Returns the job's id or the refusal. */
async function sendOne(
  { apiKey, bodies, send }: Submission,
  {
    recipient,
    keys,
    isCounted,
  }: { readonly recipient: string; readonly keys: string | null; readonly isCounted: boolean },
): Promise<string | SmtpRefusal> {
  const body = Buffer.from(bodies.bodyFor(recipient));
  const headers = new Headers({
    "content-type": "application/json",
    "content-length": String(body.length),
    "x-api-key": apiKey,
  });
  if (keys !== null) {
    const key = new Bun.CryptoHasher("sha256").update(`${keys}\n${recipientKey(recipient)}`).digest("base64url");
    headers.set("idempotency-key", `smtp-${key}`);
  }
  // No socket is involved: the address is only there because a request has one.
  const request = new Request("http://smtp.invalid/v1/send/email", { method: "POST", headers, body });
  const response = await send(request, isCounted);
  const answer: unknown = await response.json();
  const members = isJsonObject(answer) ? answer : {};
  const { job_id } = members;
  return response.status === 202 && typeof job_id === "string" ? job_id : toSmtpRefusal(response, members);
}

/** Converts the API's refusal to an SMTP reply. */
function toSmtpRefusal({ status, headers }: Response, members: Readonly<Record<string, unknown>>): SmtpRefusal {
  const { error, violations } = members;
  const all: readonly unknown[] = Array.isArray(violations) ? violations : [];
  const [first] = all;
  const violation = isJsonObject(first) && typeof first["message"] === "string" ? `: ${first["message"]}` : "";
  const why = `${typeof error === "string" ? error : "the message was refused"}${violation}`;
  switch (status) {
    case 401:
      return new SmtpRefusal(550, "5.7.8 the API key is not valid any more");
    case 403:
      return new SmtpRefusal(550, `5.7.1 ${why}`);
    case 413:
      return new SmtpRefusal(552, `5.3.4 ${why}`);
    case 429:
      return headers.get("ratelimit-remaining") === "0" ? overLimit() : new SmtpRefusal(452, `4.3.1 ${why}`);
    case 408:
    case 500:
    case 503:
      return new SmtpRefusal(451, `4.3.0 ${why}`);
    default:
      return new SmtpRefusal(554, `5.6.0 ${why}`);
  }
}

function inPart(failure: SmtpRefusal, queued: number, all: number, keys: string | null): SmtpRefusal {
  const again = failure.isTemporary && keys !== null ? "; send the same again, and nobody gets it twice" : "";
  return new SmtpRefusal(
    failure.responseCode,
    `${failure.message.slice(0, 350)} (queued for ${queued} of ${all} recipients${again})`,
  );
}
