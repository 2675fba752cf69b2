import type { ContentStore, StoredContent } from "../../domain/content-store.ts";
import type { QueuedJob } from "../../domain/jobs/job.ts";
import type { Attachment } from "./mime/multipart.ts";
import type { AttachedFile } from "./payload.ts";

/** An accepted attachment is no longer available: the message must not be sent without it. */
export class LostContentError extends Error {
  override readonly name = "LostContentError";
}

/** Reads the stored message that the job sends unchanged. Throws and rejects as `attachedFiles` does. */
export async function keptBytes(
  job: QueuedJob,
  { sha256 }: StoredContent,
  contents: Pick<ContentStore, "get"> | undefined,
): Promise<Buffer> {
  const body = soundBody((await contents?.get(job, sha256)) ?? null, sha256, "content");
  return Buffer.from(body.buffer, body.byteOffset, body.length);
}

function soundBody(body: Uint8Array | null, sha256: string, what: string): Uint8Array {
  if (body === null) throw new LostContentError(`the message could not be sent: its ${what} is gone`);
  if (new Bun.CryptoHasher("sha256").update(body).digest("hex") === sha256) return body;
  throw new LostContentError(`the message could not be sent: its ${what} is damaged`);
}

/**
 * Reads the job's attachments with their content. Throws `LostContentError`; rejects with `UnavailableError` or
 * `TransportError` while the store is unavailable.
 */
export async function attachedFiles(
  job: QueuedJob,
  files: readonly AttachedFile[],
  contents: Pick<ContentStore, "get"> | undefined,
): Promise<readonly Attachment[]> {
  const found = new Map<string, Uint8Array>();
  const attachments: Attachment[] = [];
  for (const { filename, contentType, contentId, sha256 } of files) {
    const body =
      found.get(sha256) ?? soundBody((await contents?.get(job, sha256)) ?? null, sha256, `attachment ${filename}`);
    found.set(sha256, body);
    attachments.push({ filename, ...(contentType && { contentType }), ...(contentId && { contentId }), body });
  }
  return attachments;
}
