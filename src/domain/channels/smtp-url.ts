import { extractHost } from "../texts/host.ts";

/** The parts of an SMTP URL. */
export interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte (RFC 8314, 3.3). */
  readonly secure: boolean;
  readonly user: string;
  readonly password: string;
}

/**
 * Parses `smtp://` and `smtps://` URLs, with default ports 587 and 465. Returns null for any other text. A query is
 * ignored: nodemailer would take options from it, including its log, its proxy and its limits.
 */
export function parseSmtpUrl(smtpUrl: string): SmtpServer | null {
  const url = URL.parse(smtpUrl);
  if (url === null || url.hostname === "" || (url.protocol !== "smtp:" && url.protocol !== "smtps:")) return null;
  const secure = url.protocol === "smtps:";
  try {
    return {
      host: extractHost(url),
      port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
      secure,
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
    };
  } catch (error) {
    // A stray percent sign in the credentials.
    if (error instanceof URIError) return null;
    throw error;
  }
}
