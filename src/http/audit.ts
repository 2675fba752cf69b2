import { isJsonObject, type JsonObject } from "../domain/texts/json.ts";
import { splitAddress } from "../domain/texts/split-address.ts";

/** An audited call: an operator's call that is not a read, or a tenant's call that changes its stored data. */
export interface AuditedCall {
  /** The operator, or the tenant's key, whose id is its name as well: the tenant chose every other name that it has. */
  readonly operator: { readonly id: string; readonly name: string };
  /** The operation's id in the API document. */
  readonly action: string;
  readonly tenantId: string | null;
  /** The other parts that the path names. */
  readonly target: string | null;
  readonly requestId: string;
  /** The tenant itself calls. */
  readonly isTenants?: true;
}

export interface AuditedEnd {
  /** The answer's status. */
  readonly status: number;
  readonly detail: JsonObject;
  /** The id of the tenant that the call created. */
  readonly newTenantId: string | null;
}

/**
 * The audit log. A call is recorded before it begins: if that fails, the call is refused without effect. Its end is added
 * before it is answered: if that fails, or the process dies, the row remains without a status, which means that the call's
 * outcome is unknown. So every change has a row.
 */
export interface AuditLog {
  /** Resolves to a function that adds the end and never rejects. Rejects with `UnavailableError` or `TransportError`. */
  begin(call: AuditedCall): Promise<(end: AuditedEnd) => Promise<void>>;
}

/** Which members of bodies the audit log shows. Everything else may be a secret, and only its name is shown. */
export interface AuditShown {
  /** Members of the request's body. */
  readonly body?: readonly string[];
  /** Members of the answer's body, such as the id of a new resource. */
  readonly answer?: readonly string[];
  /** The answer's member that is the id of a new tenant. */
  readonly newTenant?: string;
}

const TEXT_CHARS_MAX = 200;
const HIDDEN = "(not shown)";
/** Bound on the other names recorded from a body: a caller may send any number of them, of any length. */
const NAMES_MAX = 30;
const PLAIN_NAME = /^[\w-]{1,40}$/;

/** The members of an endpoint's declaration that the log needs. */
interface AuditedPath {
  readonly path: string;
  readonly params?: Readonly<Record<string, { readonly isPersonal?: boolean }>> | undefined;
}

/** Returns the tenant and the target that a call's path names. */
export function auditedPath(
  { path, params = {} }: AuditedPath,
  raw: Readonly<Record<string, string | null>>,
): Pick<AuditedCall, "tenantId" | "target"> {
  const isOfTenant = path.startsWith("/dash/api/tenants/:id");
  const named = Object.entries(raw).filter(([name]) => !(isOfTenant && name === "id"));
  const shown = named.map(([name, text]) => (params[name]?.isPersonal === true ? withoutPerson(text) : (text ?? "")));
  return {
    tenantId: isOfTenant ? cut(raw["id"] ?? "") : null,
    target: shown.length === 0 ? null : cut(shown.join("/")),
  };
}

/** Returns the detail that the audit log keeps of a call and its answer, without secrets. */
export function auditedDetail(shown: AuditShown | undefined, body: unknown, answer: unknown): JsonObject {
  return {
    ...(isJsonObject(body) ? { body: hideMembers(body, shown?.body ?? []) } : null),
    ...(shown?.answer !== undefined && isJsonObject(answer) ? { answer: only(answer, shown.answer) } : null),
  };
}

/** Returns the id of the tenant that a call created. */
export function readNewTenant({ newTenant }: AuditShown = {}, answer: unknown): string | null {
  if (newTenant === undefined || !isJsonObject(answer)) return null;
  const id = answer[newTenant];
  return typeof id === "string" ? id : null;
}

function hideMembers(body: JsonObject, names: readonly string[]): JsonObject {
  const others = Object.keys(body).filter((name) => !names.includes(name));
  const plain = others.filter((name) => PLAIN_NAME.test(name)).slice(0, NAMES_MAX);
  const hidden = plain.map((name) => [name, HIDDEN] as const);
  const left = others.length - hidden.length;
  return { ...only(body, names), ...Object.fromEntries(hidden), ...(left > 0 && { "…": `${left} more` }) };
}

function only(given: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(given, name) ? [[name, short(given[name])]] : [])));
}

function short(value: unknown) {
  if (typeof value === "string") return cut(value);
  if (value === null || typeof value === "number" || typeof value === "boolean") return value;
  return cut(JSON.stringify(value) ?? "");
}

/** PostgreSQL stores neither NUL nor unpaired surrogates. */
function cut(text: string): string {
  return text.slice(0, TEXT_CHARS_MAX).replaceAll("\0", "").toWellFormed();
}

/** Returns an address without the part that names a person. */
function withoutPerson(text: string | null): string {
  const parts = splitAddress(text ?? "");
  return parts === null ? "…" : `…@${parts.domain}`;
}
