import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import type { OperatorAccount } from "../domain/tenants/operator.ts";
import { ApiError } from "./api-error.ts";

const SESSION_COOKIE = "waybill_session";
/** Browsers send the cookie to the dashboard's pages and its API only. */
const COOKIE_PATH = "/dash";
const SESSION_SECONDS = 12 * 60 * 60;
const SESSION_CHARS_MAX = 300;
const SESSION = /^v1\.([A-Za-z0-9_-]{1,100})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/;

/** A session's claim. It is valid only if the tag fits. */
interface Claim {
  readonly operatorId: string;
  readonly endsMs: number;
  readonly tag: Buffer;
}

/**
 * Sessions of operators in a browser. A session is a signed text that the browser keeps in a cookie, so every process knows the
 * sessions that another one began, and none is stored.
 *
 * The signature is HMAC-SHA-256 over the operator's id, the end, and the hash of the operator's token: once the operator is
 * deleted or the token is replaced, its sessions are invalid. The key is derived from a master key by HKDF-SHA-256 (RFC 5869),
 * so a reader of the registry, where the hashes are, cannot make sessions.
 */
export class OperatorSessions {
  private readonly keys: readonly Uint8Array[];

  /** @param masterKeys The first one signs; all of them verify. */
  constructor(masterKeys: readonly Uint8Array[]) {
    this.keys = masterKeys.map(
      (master) => new Uint8Array(hkdfSync("sha256", master, "", "waybill dashboard session", 32)),
    );
  }

  /** Creates a session that begins now. */
  begin({ operator: { id }, tokenHash }: OperatorAccount, nowMs: number): string {
    const [key] = this.keys;
    if (key === undefined) throw new Error("there is no key to sign sessions with");
    const endsMs = nowMs + SESSION_SECONDS * 1_000;
    const tag = computeTag(key, { operatorId: id, endsMs }, tokenHash);
    return `v1.${id}.${endsMs}.${tag.toString("base64url")}`;
  }

  /**
   * Returns the operator whose session the request carries; null: none, or an expired one. `find` looks up an operator by id.
   */
  findOperator(request: Request, nowMs: number, find: (id: string) => OperatorAccount | null): OperatorAccount | null {
    const claim = parseClaim(request.headers.get("cookie"));
    if (claim === null || claim.endsMs <= nowMs) return null;
    const account = find(claim.operatorId);
    if (account === null) return null;
    const fits = this.keys.some((key) => timingSafeEqual(computeTag(key, claim, account.tokenHash), claim.tag));
    return fits ? account : null;
  }
}

function computeTag(key: Uint8Array, { operatorId, endsMs }: Omit<Claim, "tag">, tokenHash: string): Buffer {
  return createHmac("sha256", key).update(`${operatorId}|${endsMs}|${tokenHash}`).digest();
}

function parseClaim(cookies: string | null): Claim | null {
  const prefix = `${SESSION_COOKIE}=`;
  const cookie = cookies
    ?.split(";")
    .map((each) => each.trim())
    .find((each) => each.startsWith(prefix));
  if (cookie === undefined || cookie.length > SESSION_CHARS_MAX) return null;
  const [, operatorId, endsMs, tag] = SESSION.exec(cookie.slice(prefix.length)) ?? [];
  if (operatorId === undefined || endsMs === undefined || tag === undefined) return null;
  return { operatorId, endsMs: Number(endsMs), tag: Buffer.from(tag, "base64url") };
}

/** Returns the header that sets the browser's session, or removes it (null). */
export function sessionCookie(session: string | null, isSecure: boolean): string {
  const ages = session === null ? 0 : SESSION_SECONDS;
  const secure = isSecure ? "; Secure" : "";
  return `${SESSION_COOKIE}=${session ?? ""}; Path=${COOKIE_PATH}; HttpOnly; SameSite=Strict; Max-Age=${ages}${secure}`;
}

/**
 * Throws 403 if another site's page made the request: `SameSite=Strict` still lets the pages of other ports and sister domains
 * use the cookie. Every browser that is in use sends one of the two headers with each call that is not a GET.
 */
export function refuseOtherPages({ method, headers }: Request, publicUrl: string | undefined): void {
  const site = headers.get("sec-fetch-site");
  // `none`: the person opened the address themselves.
  const isOurs =
    site === null ? isOwnOrigin(headers, publicUrl) : site === "same-origin" || (isRead(method) && site === "none");
  if (!isOurs)
    throw new ApiError(403, "a session serves the dashboard's own pages alone: this call came from elsewhere");
}

/** Throws 403 unless the request can only come from our own page. For requests that a session lets pass. */
export function requireOwnPage(request: Request, publicUrl: string | undefined): void {
  refuseOtherPages(request, publicUrl);
  if (isRead(request.method) || request.headers.get("x-waybill-dashboard") === "1") return;
  throw new ApiError(403, "with a session, this call also needs the header X-Waybill-Dashboard: 1");
}

function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

function isOwnOrigin(headers: Headers, publicUrl: string | undefined): boolean {
  const origin = headers.get("origin");
  if (origin === null) return true;
  if (!URL.canParse(origin)) return false;
  const { host } = new URL(origin);
  return host === headers.get("host") || (publicUrl !== undefined && host === new URL(publicUrl).host);
}
