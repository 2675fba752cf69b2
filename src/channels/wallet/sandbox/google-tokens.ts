import { createPublicKey, randomBytes, verify } from "node:crypto";
import type { Clock } from "../../../domain/clock.ts";
import { remember } from "../../../domain/remember.ts";
import { type JsonObject, parseJsonObject } from "../../../domain/texts/json.ts";

export interface TokenReply {
  readonly status: number;
  readonly body: JsonObject;
}

const TOKEN_SECONDS = 3_600;
const TOKENS_MAX = 10_000;
/** Allowed clock difference between two machines. */
const SKEW_SECONDS = 300;
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const SCOPE = "https://www.googleapis.com/auth/wallet_object.issuer";

/**
 * The token endpoint (RFC 7523). For accounts with a known key it verifies the signature; for others it accepts any
 * well-formed assertion, since a sandbox's tenants may have keys that were never registered.
 */
export class GoogleTokens {
  /** The number of tokens issued. */
  granted = 0;
  /** Token → its account, oldest first. */
  private readonly issued = new Map<string, { readonly account: string; readonly endsMs: number }>();

  constructor(
    private readonly clock: Clock,
    /** Public keys in PEM, by service account address. */
    private readonly keys: ReadonlyMap<string, string>,
  ) {}

  /** Grants a token. `form`: the request body; `audience`: the endpoint's own address. */
  grant(form: string, audience: string): TokenReply {
    const fields = new URLSearchParams(form);
    if (fields.get("grant_type") !== GRANT_TYPE) return refusal("unsupported_grant_type", "Invalid grant_type");
    const assertion = fields.get("assertion") ?? "";
    const account = this.verifyAssertion(assertion, audience);
    if (account === "untimely") return refusal("invalid_grant", UNTIMELY);
    if (account === null) return refusal("invalid_grant", "Invalid JWT Signature.");
    const token = `ya29.${randomBytes(32).toString("base64url")}`;
    this.granted += 1;
    const value = { account, endsMs: this.clock.nowMs() + TOKEN_SECONDS * 1000 };
    remember(this.issued, { key: token, value, max: TOKENS_MAX });
    return { status: 200, body: { access_token: token, expires_in: TOKEN_SECONDS, token_type: "Bearer" } };
  }

  /** Returns the account to which the header's token was issued, or null. */
  accountBehind(authorization: string): string | null {
    const token = this.issued.get(authorization.replace(/^Bearer /, ""));
    return token !== undefined && token.endsMs > this.clock.nowMs() ? token.account : null;
  }

  /** Revokes all tokens early. */
  withdraw(): void {
    this.issued.clear();
  }

  /** Returns the assertion's account, or null if it is invalid. `untimely`: its times are not current. */
  private verifyAssertion(assertion: string, audience: string): string | null {
    const [header = "", payload = "", signature = "", ...rest] = assertion.split(".");
    const claims = decode(payload);
    const account = claims?.["iss"];
    if (rest.length > 0 || decode(header)?.["alg"] !== "RS256" || !claims || typeof account !== "string") return null;
    const nowSeconds = this.clock.nowMs() / 1000;
    const { aud, scope, iat, exp } = claims;
    const isFresh =
      typeof iat === "number" && typeof exp === "number" && iat <= nowSeconds + SKEW_SECONDS && exp >= nowSeconds;
    if (!isFresh) return "untimely";
    if (exp - iat > TOKEN_SECONDS || aud !== audience || scope !== SCOPE) return null;
    const key = this.keys.get(account);
    const bytes = Buffer.from(signature, "base64url");
    if (key === undefined) return bytes.length >= 128 ? account : null;
    return verify("sha256", Buffer.from(`${header}.${payload}`), createPublicKey(key), bytes) ? account : null;
  }
}

const UNTIMELY =
  "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.";

function decode(part: string): JsonObject | null {
  return parseJsonObject(Buffer.from(part, "base64url").toString("utf8"));
}

function refusal(error: string, description: string): TokenReply {
  return { status: 400, body: { error, error_description: description } };
}
