import { ApiError } from "../../../core/errors.ts";
import type { GoogleClass, GoogleClasses } from "../../../core/google-classes.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Tenant } from "../../../core/tenant.ts";
import type { GoogleKind } from "../../../core/wallet.ts";
import type { Caller, GoogleApi, GoogleCall } from "./google-api.ts";
import { requestError } from "./request-error.ts";

/** Classes, while the caller of the API waits. */
export class GoogleClassDesk implements GoogleClasses {
  /** `callerOf` throws `ApiError` 500 where the tenant has no credentials. */
  constructor(
    private readonly api: GoogleApi,
    private readonly callerOf: (tenant: Tenant) => Caller,
  ) {}

  async create(tenant: Tenant, { kind, classId, data }: GoogleClass): Promise<void> {
    await this.call(tenant, classId, { method: "POST", path: [`${kind}Class`], body: data });
  }

  async change(tenant: Tenant, { kind, classId, data }: GoogleClass): Promise<void> {
    await this.call(tenant, classId, { method: "PATCH", path: [`${kind}Class`, classId], body: data });
  }

  read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<JsonObject> {
    return this.call(tenant, classId, { method: "GET", path: [`${kind}Class`, classId] });
  }

  private async call(tenant: Tenant, classId: string, call: GoogleCall): Promise<JsonObject> {
    const answer = await this.api.call(this.callerOf(tenant), call);
    if (answer.kind === "done") return answer.body;
    if (answer.kind === "refused") {
      if (answer.cause === "exists") throw new ApiError(400, `there is a class ${classId} already`);
      if (answer.cause === "missing") throw new ApiError(404, `there is no class ${classId}`);
      if (answer.cause === "invalid") throw refused(answer.said);
    }
    throw requestError(answer);
  }
}

function refused(said: string): ApiError {
  return new ApiError(400, `Google's wallet refused the class${said === "" ? "" : `: ${said}`}`);
}
