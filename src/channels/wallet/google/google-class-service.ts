import { ApiError } from "../../../domain/errors.ts";
import type { JsonObject } from "../../../domain/json.ts";
import type { Tenant } from "../../../domain/tenant.ts";
import type { GoogleKind } from "../../../domain/wallet.ts";
import type { GoogleClass, GoogleClasses } from "../google-classes.ts";
import type { ClassOwnership } from "./class-ownership.ts";
import type { Caller, GoogleAnswer, GoogleApi, Refused } from "./google-api.ts";
import { requestError } from "./request-error.ts";

export interface GoogleClassServiceOptions {
  readonly api: GoogleApi;
  readonly ownership: ClassOwnership;
  /** Throws `ApiError` 500 if the tenant has no credentials. */
  callerOf(tenant: Tenant): Caller;
}

/** Operations on classes while the caller of the API waits. */
export class GoogleClassService implements GoogleClasses {
  constructor(private readonly options: GoogleClassServiceOptions) {}

  async create(tenant: Tenant, { kind, classId, data }: GoogleClass): Promise<void> {
    const { api, ownership, callerOf } = this.options;
    const caller = callerOf(tenant);
    if ((await ownership.claim(tenant, classId)) === "theirs") throw existing(classId);
    requireDone(await api.call(caller, { method: "POST", path: [`${kind}Class`], body: data }), classId);
  }

  async change(tenant: Tenant, { kind, classId, data }: GoogleClass): Promise<void> {
    const { api, ownership, callerOf } = this.options;
    const caller = callerOf(tenant);
    const whose = await ownership.claimExisting({ tenant, kind, classId, caller });
    if (whose === "theirs") throw missing(classId);
    if (whose !== "ours") throw errorOf(whose, classId);
    requireDone(await api.call(caller, { method: "PATCH", path: [`${kind}Class`, classId], body: data }), classId);
  }

  async read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<JsonObject> {
    const { api, ownership, callerOf } = this.options;
    const caller = callerOf(tenant);
    // Shows a class without an owner and leaves it unowned: reading changes nothing.
    if ((await ownership.whose(tenant, classId)) === "theirs") throw missing(classId);
    return requireDone(await api.call(caller, { method: "GET", path: [`${kind}Class`, classId] }), classId);
  }

  async requireUsable(tenant: Tenant, classId: string): Promise<void> {
    if ((await this.options.ownership.whose(tenant, classId)) !== "theirs") return;
    throw new ApiError(400, `pass_data.class_id: the class ${classId} is another tenant's, choose an id of your own`);
  }
}

function requireDone(answer: GoogleAnswer, classId: string): JsonObject {
  if (answer.kind !== "done") throw errorOf(answer, classId);
  return answer.body;
}

function errorOf(answer: Refused, classId: string): ApiError {
  if (answer.kind === "refused") {
    if (answer.cause === "exists") return existing(classId);
    if (answer.cause === "missing") return missing(classId);
    if (answer.cause === "invalid") return refused(answer.said);
  }
  return requestError(answer);
}

function existing(classId: string): ApiError {
  return new ApiError(400, `there is a class ${classId} already`);
}

function missing(classId: string): ApiError {
  return new ApiError(404, `there is no class ${classId}`);
}

function refused(said: string): ApiError {
  return new ApiError(400, `Google's wallet refused the class${said === "" ? "" : `: ${said}`}`);
}
