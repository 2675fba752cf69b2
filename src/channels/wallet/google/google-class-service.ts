import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import type { Tenant } from "../../../domain/tenants/tenant.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import type { GoogleClass, GoogleClassAnswer, GoogleClasses } from "../google-classes.ts";
import type { ClassOwnership } from "./class-ownership.ts";
import { type Caller, type GoogleAnswer, type GoogleApi, NO_CREDENTIALS, unusable } from "./google-api.ts";

export interface GoogleClassServiceOptions {
  readonly api: GoogleApi;
  readonly ownership: ClassOwnership;
  callbackUrl(): string | null;
  /** Returns null if the tenant has no credentials. */
  findCaller(tenant: Tenant): Caller | null;
}

/** Operations on classes while the caller of the API waits. */
export class GoogleClassService implements GoogleClasses {
  constructor(private readonly options: GoogleClassServiceOptions) {}

  async create(tenant: Tenant, { kind, classId, data }: GoogleClass): Promise<GoogleClassAnswer> {
    const { api, ownership, findCaller } = this.options;
    const caller = findCaller(tenant);
    if (caller === null) return NOT_CONFIGURED;
    const claimed = await ownership.claim(tenant, classId);
    if (claimed !== "ours") return { kind: claimed === "full" ? "full" : "exists" };
    const body = { ...callbackOptions(this.options.callbackUrl()), ...data };
    return toAnswer(await api.call(caller, { method: "POST", path: [`${kind}Class`], body }));
  }

  async change(tenant: Tenant, { kind, classId, data }: GoogleClass): Promise<GoogleClassAnswer> {
    const { api, ownership, findCaller } = this.options;
    const caller = findCaller(tenant);
    if (caller === null) return NOT_CONFIGURED;
    const whose = await ownership.claimExisting({ tenant, kind, classId, caller });
    if (whose === "theirs") return { kind: "missing" };
    if (whose === "full") return { kind: "full" };
    if (whose !== "ours") return toAnswer(whose);
    const path = [`${kind}Class`, classId];
    const parts = Object.entries(data).filter(([name, value]) => IN_PARTS.includes(name) && isJsonObject(value));
    // Google replaces such a member whole, so parts that the change omits are sent again.
    const held = parts.length === 0 ? null : await api.call(caller, { method: "GET", path });
    if (held !== null && held.kind !== "done") return toAnswer(held);
    const whole = parts.map(([name, part]) => [name, mergedPart(held?.body[name], part)] as const);
    const body = { ...data, ...Object.fromEntries(whole) };
    return toAnswer(await api.call(caller, { method: "PATCH", path, body }));
  }

  async read(tenant: Tenant, kind: GoogleKind, classId: string): Promise<GoogleClassAnswer> {
    const { api, ownership, findCaller } = this.options;
    const caller = findCaller(tenant);
    if (caller === null) return NOT_CONFIGURED;
    // A class without an owner can be read by every tenant, and reading does not claim it.
    if ((await ownership.whose(tenant, classId)) === "theirs") return { kind: "missing" };
    return toAnswer(await api.call(caller, { method: "GET", path: [`${kind}Class`, classId] }));
  }

  async isUsable(tenant: Tenant, classId: string): Promise<boolean> {
    return (await this.options.ownership.whose(tenant, classId)) !== "theirs";
  }
}

/** Returns the class members that make Google report saves and removals of its objects. */
export function callbackOptions(url: string | null): JsonObject {
  return url === null ? {} : { callbackOptions: { url } };
}

/** Members of a class that change member by member. */
const IN_PARTS: readonly string[] = ["dateTime", "venue", "origin", "destination", "flightHeader"];

function mergedPart(held: Json | undefined, part: Json): JsonObject {
  const merged = { ...(isJsonObject(held) ? held : null), ...(isJsonObject(part) ? part : null) };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}

const NOT_CONFIGURED: GoogleClassAnswer = { kind: "unusable", ...NO_CREDENTIALS };

function toAnswer(answer: GoogleAnswer): GoogleClassAnswer {
  if (answer.kind === "done") return { kind: "done", data: answer.body };
  if (answer.kind === "refused") {
    if (answer.cause === "exists" || answer.cause === "missing") return { kind: answer.cause };
    if (answer.cause === "invalid") return { kind: "refused", said: answer.said };
  }
  return { kind: "unusable", ...unusable(answer) };
}
