import type { Operator } from "../domain/tenants/operator.ts";
import type { Json, JsonObject } from "../domain/texts/json.ts";
import { ApiError } from "../http/api-error.ts";
import { type AuditLog, type AuditShown, auditedDetail, readNewTenant } from "../http/audit.ts";
import { requireResult } from "../http/store-results.ts";
import type { Registry } from "../storage/registry.ts";
import { NEW_KEY_SHOWN } from "../tenants/endpoints/key-endpoints.ts";
import { createdTenant, NEW_TENANT_SHOWN } from "../tenants/endpoints/tenant-endpoints.ts";
import type { NewTenant } from "../tenants/registry.ts";
import type { ControlTask } from "./control-socket.ts";

/** Whoever may enter the data folder, or knows the database's address. No stored operator has this id. */
const COMMAND_LINE: Operator = { id: "command-line", name: "command line", role: "write" };

/** A command's creation. */
export type Creation =
  | { readonly kind: "tenant"; readonly tenant: NewTenant }
  | { readonly kind: "key"; readonly tenantId: string };

export interface CreationPorts {
  readonly registry: Pick<Registry, "createTenant" | "createKey">;
  readonly audit: AuditLog;
}

/** Creates it as the operator API does, with a row in the audit log. Rejects with an `ApiError` as that answers. */
export async function create(ports: CreationPorts, creation: Creation): Promise<unknown> {
  if (creation.kind === "key") {
    const { tenantId } = creation;
    const make = async () => requireResult(await ports.registry.createKey(tenantId));
    return audited(ports.audit, { action: "createKey", tenantId, shown: NEW_KEY_SHOWN, body: {} }, make);
  }
  const { tenant } = creation;
  const make = async () => createdTenant(await ports.registry.createTenant(tenant));
  // A tenant has only values that JSON has.
  const body = { ...tenant } as JsonObject;
  return audited(ports.audit, { action: "createTenant", tenantId: null, shown: NEW_TENANT_SHOWN, body }, make);
}

/** The same for a command beside the start that holds the registry. */
export function createTask(ports: CreationPorts): ControlTask {
  // Our own command asks, and what is created has only values that JSON has.
  return async (input) => (await create(ports, input as unknown as Creation)) as Json;
}

async function audited(
  audit: AuditLog,
  call: {
    readonly action: string;
    readonly tenantId: string | null;
    readonly shown: AuditShown;
    readonly body: JsonObject;
  },
  make: () => Promise<unknown>,
): Promise<unknown> {
  const { action, tenantId, shown, body } = call;
  const requestId = crypto.randomUUID();
  const end = await audit.begin({ operator: COMMAND_LINE, action, tenantId, target: null, requestId });
  let made: unknown;
  try {
    made = await make();
  } catch (error) {
    const status = error instanceof ApiError ? error.status : 500;
    await end({ status, detail: auditedDetail(shown, body, null), newTenantId: null });
    throw error;
  }
  const newTenantId = readNewTenant(shown, made);
  await end({ status: 201, detail: auditedDetail(shown, body, made), newTenantId });
  return made;
}
