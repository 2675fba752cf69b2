import type { OpenRegistry } from "../app/open-registry.ts";
import type { OpenEventStore } from "../app/stores.ts";
import { UnavailableError } from "../domain/errors.ts";
import type { SandboxView } from "../domain/jobs/report.ts";
import type { Operator } from "../domain/tenants/operator.ts";
import { isRecipient, normalisedRecipient } from "../domain/tenants/recipient-index.ts";
import type { Json } from "../domain/texts/json.ts";
import type { RedisQueue } from "../engine/queue/redis-queue.ts";
import { ApiError } from "../http/api-error.ts";
import { requireResult } from "../http/store-results.ts";
import { systemClock } from "../runtime/system-clock.ts";
import { erasureCall, shownErasure } from "../tenants/endpoints/erasure-endpoint.ts";
import { eraseRecipient } from "../tenants/erasure.ts";
import { SuppressionList } from "../tenants/suppression-list.ts";
import type { ControlTask } from "./control-socket.ts";

export interface EraseRequest {
  readonly tenantId: string;
  readonly recipient: string;
  readonly isSuppressed: boolean;
}

interface ErasureStores {
  readonly registry: Pick<OpenRegistry, "registry" | "recipients" | "audit">;
  readonly queue: RedisQueue;
  readonly eventStore: Pick<OpenEventStore, "erasure">;
  /** Null: real providers are in use, or the sandbox is in another process. */
  sandbox(): Pick<SandboxView, "erase"> | null;
}

/** Whoever can run commands here: the audit log knows no more. */
const COMMAND_LINE: Operator = { id: "command-line", name: "command-line", role: "write" };

/** Erases a recipient for a command, as the operator API's call does. Throws an `ApiError` for a mistake of the caller. */
export async function eraseForCommand(
  { registry: { registry, recipients, audit }, queue, eventStore, sandbox }: ErasureStores,
  { tenantId, recipient: text, isSuppressed }: EraseRequest,
): Promise<Json> {
  const recipient = normalisedRecipient(text);
  if (!isRecipient(recipient))
    throw new ApiError(400, "the recipient must be one e-mail address, phone number or WhatsApp user id");
  const { shard } = requireResult(await registry.tenant(tenantId));
  const call = { operator: COMMAND_LINE, action: erasureCall.operation, tenantId, target: null };
  const end = await audit.begin({ ...call, requestId: crypto.randomUUID() });
  const suppressions = new SuppressionList({ registry, index: queue, queue, recipients });
  const history = eventStore.erasure(recipients);
  const ports = { suppressions, queue, history, sandbox: sandbox(), recipients, clock: systemClock };
  const erasure = requireResult(await eraseRecipient(ports, { tenantId, shard }, recipient, { isSuppressed }));
  const shown = shownErasure(erasure);
  const detail = { answer: { recipient_hash: shown.recipient_hash, complete: shown.complete } };
  await end({ status: shown.complete ? 200 : 202, detail, newTenantId: null });
  return shown;
}

/** The same for a command beside the start that holds the stores. */
export function eraseTask(stores: ErasureStores): ControlTask {
  return async (input) => {
    try {
      // Our own command asks.
      return await eraseForCommand(stores, input as unknown as EraseRequest);
    } catch (error) {
      // The socket tells the command the message alone.
      throw error instanceof ApiError ? new UnavailableError(error.message) : error;
    }
  };
}
