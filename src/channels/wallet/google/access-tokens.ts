import type { JWT } from "google-auth-library";
import type { GoogleIssuer } from "../../../domain/channels/wallet.ts";
import { TransportError } from "../../../domain/errors.ts";
import { remember } from "../../../domain/remember.ts";
import { parseJsonObject } from "../../../domain/texts/json.ts";
import { walletLimits } from "../limits.ts";
import { boundedFetch } from "./bounded-fetch.ts";

export type TokenAnswer =
  | { readonly kind: "token"; readonly token: string }
  /** The service account or its key is invalid. `said`: the endpoint's error text, or why the key is unusable. */
  | { readonly kind: "refused"; readonly said: string };

/**
 * Access tokens of service accounts (RFC 7523), cached until shortly before they expire.
 *
 * Invariants:
 * A1. Each account has at most one token request in flight, however many callers wait for it.
 * A2. A token is used only by the holder of its key: accounts are identified by address and key.
 */
export class AccessTokens {
  /** By account, most recently used last. */
  private readonly clients = new Map<string, JWT>();
  private readonly stopped = new AbortController();

  constructor(private readonly tokenUrl: string) {}

  /** Rejects with `TransportError` if the endpoint does not respond properly. */
  async of(issuer: GoogleIssuer): Promise<TokenAnswer> {
    try {
      const { token } = await (await this.getClient(issuer)).getAccessToken();
      if (typeof token !== "string" || token === "") throw new TransportError("the token endpoint gave no token");
      return { kind: "token", token };
    } catch (error) {
      return judge(error);
    }
  }

  /** Forgets a refused token, unless a newer one has replaced it. */
  drop(issuer: GoogleIssuer, token: string): void {
    const key = formatKey(issuer);
    if (this.clients.get(key)?.credentials.access_token === token) this.clients.delete(key);
  }

  /** Cancels requests in flight. */
  close(): void {
    this.stopped.abort();
  }

  private async getClient(issuer: GoogleIssuer): Promise<JWT> {
    const key = formatKey(issuer);
    const known = this.clients.get(key) ?? (await this.newClient(issuer));
    // Another caller may have made one meanwhile.
    const client = this.clients.get(key) ?? known;
    remember(this.clients, { key, value: client, max: walletLimits.googleAccountsMax });
    return client;
  }

  private async newClient({ clientEmail, privateKeyPem }: GoogleIssuer): Promise<JWT> {
    // Loading takes a tenth of a second; only processes that handle Google passes pay it.
    const { JWT } = await import("google-auth-library");
    return new JWT({
      email: clientEmail,
      key: privateKeyPem,
      scopes: [SCOPE],
      eagerRefreshThresholdMillis: walletLimits.googleTokenMarginMs,
      // The library has one fixed token endpoint; this one is its audience, and is called instead.
      additionalClaims: { aud: this.tokenUrl },
      transporterOptions: {
        retryConfig: { retry: 0 },
        fetchImplementation: (_url, init) => this.ask(String(init?.body)),
      },
    });
  }

  private async ask(body: string): Promise<Response> {
    const { status, text } = await boundedFetch({
      url: this.tokenUrl,
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
      body,
      signal: this.stopped.signal,
      timeoutMs: walletLimits.googleTokenTimeoutMs,
      answerBytesMax: TOKEN_ANSWER_BYTES_MAX,
    });
    if (status === 400 && isOfClock(text)) throw new TransportError(WRONG_CLOCK);
    // `Response` rejects a status below 200, and a body with certain other statuses.
    return isError(status) || status === 200 ? new Response(text, { status }) : new Response(null, { status: 502 });
  }
}

const WRONG_CLOCK = "the clock of this machine is wrong, says the token endpoint: it does not take our times";

/**
 * Whether a grant was refused for its times, which come from our clock: the account is valid. The endpoint has one code
 * for all errors (RFC 6749, 5.2), so only the names of the claims (RFC 7519, 4.1) distinguish this from a wrong key or
 * an unknown account.
 */
function isOfClock(text: string): boolean {
  const answer = parseJsonObject(text);
  return answer?.["error"] === "invalid_grant" && /\b(?:iat|exp|nbf)\b/.test(String(answer["error_description"]));
}

const SCOPE = "https://www.googleapis.com/auth/wallet_object.issuer";
const TOKEN_ANSWER_BYTES_MAX = 64 * 1024;

function formatKey({ clientEmail, privateKeyPem }: GoogleIssuer): string {
  return `${clientEmail}\n${privateKeyPem}`;
}

function isError(status: number): boolean {
  return status >= 400 && status <= 599;
}

/**
 * Classifies an error: a refusal (RFC 6749, 5.2, and 403) concerns the account, as does a key that cannot sign; all
 * other errors may be temporary.
 */
function judge(error: unknown): TokenAnswer {
  if (error instanceof TransportError) throw error;
  // The library wraps our own call's error.
  if (error instanceof Error && error.cause instanceof TransportError) throw error.cause;
  const of = (name: string): unknown => (error instanceof Error ? Reflect.get(error, name) : null);
  const status = of("status");
  if (status === 400 || status === 401 || status === 403) {
    return { kind: "refused", said: error instanceof Error ? error.message : "" };
  }
  const code = of("code");
  if (typeof code === "string" && code.startsWith("ERR_OSSL_")) {
    return { kind: "refused", said: "the private key cannot be read" };
  }
  throw new TransportError("no access token could be had", { cause: error });
}
